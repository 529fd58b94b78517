package enforce

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// TestWhatCannotBeDeletedIsNotBackFilledAndNotCounted: a policy about '*' names what metrics-server
// answers, too, which can be read, and no more. Its PATCH is refused, which would have back-fill
// fail for ever, and the graph has none of it, so that nothing could be counted.
func TestWhatCannotBeDeletedIsNotBackFilledAndNotCounted(t *testing.T) {
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	fixture.PutConfigMap(api, "c", "")
	api.Put("pods", "{apiVersion: metrics.k8s.io/v1, kind: PodMetrics, metadata: {name: p, namespace: shop}}")
	api.Put("deletionpolicies", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: all}, spec: {match: {resources: [{apiGroups: ['*'], resources: ['*']}]}, "+
		"propagation: {default: Orphan}}}")
	api.Put("deletionpolicies", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: some}, spec: {match: {resources: [{apiGroups: ['*'], resources: ['*']}], "+
		"objectSelector: {matchLabels: {kept: 'yes'}}}, protection: {confirmation: Required}}}")
	inForce(t, api, func(t *testing.T, state *live.State) {
		var mu sync.Mutex
		var asked []string
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if !strings.HasPrefix(r.Path, "/apis/metrics.k8s.io/") {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if asked = append(asked, r.Method+" "+r.Path); r.Method == "PATCH" {
				return apitest.Refuse(405, "MethodNotAllowed", "patch is not for pods.metrics.k8s.io")
			}
			return nil
		})
		b := filler(t, api, state)
		b.store.Apply(graph.Serving{Resources: []graph.Resource{
			{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true, Deletable: true, Listable: true, Patchable: true},
			{Group: "metrics.k8s.io", Resource: "pods", Kind: "PodMetrics", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Listable: true},
		}}, graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("c"), Namespace: "shop", Name: "c", ResourceVersion: "2"}})
		if err := whole(t.Context(), b); err != nil {
			t.Errorf("back-fill: %v", err)
		}
		if now := stateOfFill(b); !now.done || now.of["all"] != (held{1, 1}) {
			t.Errorf("done %t, %v", now.done, now.of)
		}
		counted, _ := b.board.read()
		for name, want := range map[string]int64{"all": 1, "some": 0} {
			if n := counted.counted.tallies[policies.PolicyKey{Kind: "DeletionPolicy", Name: name}]; n.unknown || n.matched != want {
				t.Errorf("of the policy %s it counted %+v, want %d", name, n, want)
			}
		}
		if diff := cmp.Diff([]string(nil), asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

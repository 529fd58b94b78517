package collect

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestWhatAnOwnerAwaitsIsDeletedOnTheWordOfALiveRead: a watch is late, or broken, when the owner is
// told to orphan; and it still shows that the owner waits for its dependents.
func TestWhatAnOwnerAwaitsIsDeletedOnTheWordOfALiveRead(t *testing.T) {
	owner := func(uid string, deleting bool, finalizers ...any) *apitest.Reply {
		m := map[string]any{"name": "boss", "namespace": "shop", "uid": uid, "resourceVersion": "999", "finalizers": finalizers}
		if deleting {
			m["deletionTimestamp"] = "2000-01-01T00:00:00Z"
		}
		return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": m}}
	}
	const n = 50
	for name, c := range map[string]struct {
		live    *apitest.Reply // of the owner; nil: as the watch shows it
		watched string         // its finalizers
		ruled   metav1.DeletionPropagation
		gone    bool // its dependents go
		most    int  // live reads
	}{
		"it waits":                         {nil, metav1.FinalizerDeleteDependents, "", true, 2},
		"it is told to orphan":             {owner("uid-boss", true, metav1.FinalizerOrphanDependents), metav1.FinalizerDeleteDependents, "", false, 60},
		"it is told to do neither":         {owner("uid-boss", true, "example.com/other"), metav1.FinalizerDeleteDependents, "", false, 60},
		"it is another, not being deleted": {owner("uid-other", false), metav1.FinalizerDeleteDependents, "", true, 2},
		"it is restored under its uid":     {owner("uid-boss", false, metav1.FinalizerDeleteDependents), metav1.FinalizerDeleteDependents, "", false, 60},
		"it is gone":                       {apitest.Refuse(404, "NotFound", "configmaps \"boss\" not found"), metav1.FinalizerDeleteDependents, "", true, 2},
		"it cannot be read":                {apitest.Refuse(500, "InternalError", "etcd"), metav1.FinalizerDeleteDependents, "", false, n * 12},
		"it was ruled to wait":             {nil, "weir.dev/propagation", metav1.DeletePropagationForeground, true, 2},
		"it was ruled to wait, and is told to orphan": {owner("uid-boss", true, "weir.dev/propagation", metav1.FinalizerOrphanDependents), "weir.dev/propagation",
			metav1.DeletePropagationForeground, false, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEdge(t, nil)
				e.api.Put("configmaps", strings.Replace(withForeground, metav1.FinalizerDeleteDependents, c.watched, 1))
				for i := range n {
					e.api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: leaf-%d, namespace: shop, ownerReferences: "+
						"[{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss, blockOwnerDeletion: true}]}}", i))
				}
				var reads atomic.Int32
				e.api.Intercept(func(r apitest.Request) *apitest.Reply {
					if r.Method != http.MethodGet || !strings.HasSuffix(r.Path, "/configmaps/boss") {
						return nil
					}
					reads.Add(1)
					if c.live != nil && c.live.Code == 404 { // as the API server says it
						c.live.Body.(map[string]any)["details"] = map[string]any{"name": "boss", "kind": "configmaps"}
					}
					return c.live
				})
				e.run(4, func(context.Context) {
					if c.ruled != "" {
						e.store.Apply(graph.Ruled{Kind: fixture.ConfigMaps, UID: "uid-boss", Finalizer: c.watched, Propagation: c.ruled})
					}
					<-time.After(10 * time.Second)
					left := 0
					for i := range n {
						left += len(e.there(fixture.ConfigMaps, fmt.Sprint("leaf-", i)))
					}
					if c.gone && left > 0 || !c.gone && left < n {
						t.Errorf("%d of %d are left", left, n)
					}
					if got := int(reads.Load()); got == 0 || got > c.most {
						t.Errorf("%d live reads of the owner, want 1 to %d", got, c.most)
					}
				})
			})
		})
	}
}

package enforce

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// respecify changes the spec of the policy p, as a client does who leaves its status alone.
func respecify(t *testing.T, api *apitest.Server, to string) {
	t.Helper()
	var fresh map[string]any
	if err := yaml.Unmarshal([]byte(to), &fresh); err != nil {
		t.Fatal(err)
	}
	object := api.Get("deletionpolicies.weir.dev/p")
	object["spec"] = fresh["spec"]
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	api.Put("deletionpolicies", string(text))
}

// TestStatusSaysNothingOfWhatAPolicyAsksForNoMore: who has a policy add no finalizer any more, or
// gives it conditions, must not read for ever what was true of it before. While it cannot be compiled
// it is not known what it asks for.
func TestStatusSaysNothingOfWhatAPolicyAsksForNoMore(t *testing.T) {
	const (
		orphan = "propagation: {default: Orphan}"
		asking = `match: {resources: [{apiGroups: [''], resources: [configmaps]}], matchConditions: [{name: c, expression: "oldObject.metadata.labels.x == 'y'"}]}, `
		before = "BackFilled=True Done generation 1|2 of 2"
		ready  = "Ready=Unknown NotTried generation 2|Valid=True Compiled generation 2"
		still  = "|BackFilled=True Done generation 2"
	)
	for name, c := range map[string]struct {
		after string // the rest of its spec
		want  string
	}{
		"nothing":                         {"priority: 1, " + orphan, ready + still + "|2 of 2"},
		"its propagation":                 {"protection: {confirmation: Required}", ready + "|2"},
		"it, but it has a brake":          {"brake: {maxObjects: 5}", ready + still + "|2"},
		"it, but it cannot be compiled":   {"priority: 9999999, protection: {confirmation: Required}", "Ready=False Invalid generation 2|Valid=False Invalid generation 2|BackFilled=Unknown NotValid generation 2|Enforced=False NotValid generation 2|2 of 2"},
		"what may be counted":             {asking + orphan, ready + still},
		"nothing, and it has a condition": {asking + "protection: {confirmation: Required}", ready},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			api.Put("deletionpolicies", delpol("p", "configmaps", orphan))
			inForce(t, api, func(t *testing.T, state *live.State) {
				client, err := dynamic.NewForConfig(api.Config())
				if err != nil {
					t.Fatal(err)
				}
				w := &statusWriter{client: client, policies: state, metrics: testEnforcementMetrics(t), log: logr.Discard()}
				p := policies.PolicyKey{Kind: "DeletionPolicy", Name: "p"}
				known := facts{counted: counted{complete: true, done: true, tallies: map[policies.PolicyKey]tally{
					p: {wanted: 2, carrying: 2, matched: 2}}}}
				lines := func(want string) {
					t.Helper()
					if w.write(t.Context(), known) {
						t.Error("it failed")
					}
					var got []string
					for _, line := range statusOf(t, api, "deletionpolicies.weir.dev/p") {
						short, _, _ := strings.Cut(line, ": ")
						got = append(got, short)
					}
					if diff := cmp.Diff(want, strings.Join(got, "|")); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					settlePolicies(state)
				}
				lines("Ready=Unknown NotTried generation 1|Valid=True Compiled generation 1|" + before)
				respecify(t, api, delpol("p", "configmaps", c.after))
				settlePolicies(state)
				if !strings.Contains(c.want, "|BackFilled=True") {
					known.counted.tallies[p] = tally{matched: 2} // none is to carry it
				}
				lines(c.want)
				api.Requests()
				lines(c.want)
				if again := api.Requests(); len(again) > 0 {
					t.Errorf("nothing has changed, and it writes %v", again)
				}
			})
		})
	}
}

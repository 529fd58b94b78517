package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/policies/apitest"
	"github.com/weir-dev/weir/policies/live"
)

func testEnforcementMetrics(t *testing.T) *enforcementMetrics {
	t.Helper()
	m, err := newEnforcementMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// statusOf is a policy's status in lines.
func statusOf(t *testing.T, api *apitest.Server, key string) []string {
	t.Helper()
	text, err := json.Marshal(api.Get(key)["status"])
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Matched, Stamped *int64
		Conditions       []struct {
			Type, Status, Reason, Message string
			ObservedGeneration            int64
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range s.Conditions {
		message, _, _ := strings.Cut(c.Message, ": ")
		out = append(out, fmt.Sprintf("%s=%s %s generation %d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, message))
	}
	if s.Matched != nil {
		out = append(out, fmt.Sprintf("%d of %d", *s.Stamped, *s.Matched))
	}
	return out
}

func TestStatusOfPolicies(t *testing.T) {
	api := apitest.New()
	api.Put("deletionpolicies", delpol("good", "configmaps", "propagation: {default: Orphan}"))
	api.Put("deletionpolicies", delpol("broken", "configmaps", "propagation: {default: Orphan}, priority: 9999999"))
	api.Put("ownerreferencepolicies", "{apiVersion: weir.dev/v1alpha1, kind: OwnerReferencePolicy, metadata: {name: owners}, spec: {match: {resources: [{apiGroups: [''], resources: [pods]}]}, blockOwnerDeletion: Deny}}")
	inForce(t, api, func(t *testing.T, state *live.State) {
		client, err := dynamic.NewForConfig(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		w := &statusWriter{client: client, policies: state, metrics: testEnforcementMetrics(t), log: logr.Discard()}
		good, ready := "deletionpolicies.weir.dev/good", "Ready=True Compiled generation 1: the policy is in force"
		step := func(what string, tallies map[string]tally, done bool, patches int, key string, want ...string) {
			t.Helper()
			api.Requests()
			if w.write(t.Context(), tallies, done) {
				t.Errorf("%s: it failed", what)
			}
			if got := api.Requests(); len(got) != patches {
				t.Errorf("%s: %d requests, want %d: %v", what, len(got), patches, got)
			}
			if diff := cmp.Diff(want, statusOf(t, api, key)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			settlePolicies(state)
		}
		step("nothing is counted yet", nil, false, 3, good, ready)
		step("once more: nothing to write", nil, false, 0, "ownerreferencepolicies.weir.dev/owners", ready)
		step("a broken one says why", nil, false, 0, "deletionpolicies.weir.dev/broken", "Ready=False Invalid generation 1: spec.priority")
		progress := "BackFilled=False InProgress generation 1: objects that existed before are being stamped; status.stamped says how far"
		done := "BackFilled=True Done generation 1: all objects that the policy is about are as it asks"
		step("under way", map[string]tally{"good": {matched: 5, stamped: 2}}, false, 1, good, ready, progress, "2 of 5")
		step("further", map[string]tally{"good": {matched: 5, stamped: 3}}, false, 1, good, ready, progress, "3 of 5")
		step("between two passes nothing is forgotten", nil, false, 0, good, ready, progress, "3 of 5")
		step("done", map[string]tally{"good": {matched: 5, stamped: 5}}, true, 2, good, ready, done, "5 of 5")
		step("nothing left", nil, true, 1, good, ready, done, "0 of 0")
		step("not of other kinds", nil, true, 0, "ownerreferencepolicies.weir.dev/owners", ready)
	})
}

func TestStatusThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		reply *apitest.Reply
		again bool
	}{
		"refused":        {apitest.Refuse(403, "Forbidden", "no"), true},
		"in trouble":     {apitest.Refuse(500, "InternalError", "etcd is away"), true},
		"gone meanwhile": {apitest.Refuse(404, "NotFound", "not found"), false},
		"another by now": {apitest.Refuse(409, "Conflict", "uid"), false},
	} {
		api := apitest.New()
		api.Put("deletionpolicies", delpol("good", "configmaps", "propagation: {default: Orphan}"))
		inForce(t, api, func(t *testing.T, state *live.State) {
			client, err := dynamic.NewForConfig(api.Config())
			if err != nil {
				t.Fatal(err)
			}
			w := &statusWriter{client: client, policies: state, metrics: testEnforcementMetrics(t), log: logr.Discard()}
			api.Intercept(func(r apitest.Request) *apitest.Reply {
				if r.Method == "PATCH" {
					return c.reply
				}
				return nil
			})
			if got := w.write(t.Context(), nil, false); got != c.again {
				t.Errorf("%s: to be tried again: %t, want %t", name, got, c.again)
			}
		})
	}
}

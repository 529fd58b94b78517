package enforce

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

func testEnforcementMetrics(t *testing.T) *metrics {
	t.Helper()
	return newMetrics(prometheus.NewRegistry())
}

// statusOf is a policy's status in lines.
func statusOf(t *testing.T, api *apitest.Server, key string) []string {
	t.Helper()
	text, err := json.Marshal(api.Get(key)["status"])
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Matched, WithFinalizer *int64
		Waves                  string
		Conditions             []struct {
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
	switch {
	case s.WithFinalizer != nil:
		out = append(out, fmt.Sprintf("%d of %d", *s.WithFinalizer, *s.Matched))
	case s.Matched != nil:
		out = append(out, fmt.Sprintf("%d", *s.Matched))
	}
	if s.Waves != "" {
		out = append(out, s.Waves)
	}
	return out
}

func TestStatusOfPolicies(t *testing.T) {
	api := apitest.New()
	api.Put("deletionpolicies", delpol("good", "configmaps", "propagation: {default: Orphan}"))
	api.Put("deletionpolicies", delpol("broken", "configmaps", "propagation: {default: Orphan}, priority: 9999999"))
	api.Put("deletionpolicies", delpol("pods", "pods", "protection: {confirmation: Required}, failurePolicy: Fail"))
	api.Put("drainpolicies", "{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: order}, spec: {waves: [{name: all, resources: [{apiGroups: ['*'], resources: ['*']}]}]}}")
	api.Put("ownerreferencepolicies", "{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: owners}, spec: {match: {resources: [{apiGroups: [''], resources: [pods]}]}, blockOwnerDeletion: Deny}}")
	inForce(t, api, func(t *testing.T, state *live.State) {
		client, err := dynamic.NewForConfig(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		var serves served
		w := &statusWriter{client: client, policies: state, metrics: testEnforcementMetrics(t), log: logr.Discard()}
		good, valid := "deletionpolicies.weir.dev/good", "Valid=True Compiled generation 1: the policy can be judged as it is written"
		const unknown = "Ready=Unknown NotTried generation 1: it is not known yet whether the policy is enforced"
		const undrained = "Ready=False NotDrained generation 1: weir drains no namespaces, so waves are not enforced"
		const passing = "requests pass unjudged (failurePolicy Ignore)"
		var seen reach
		var drains reach
		var says map[policies.PolicyKey]reach
		step := func(what string, tallies map[policies.PolicyKey]tally, done bool, patches int, key string, want ...string) {
			t.Helper()
			api.Requests()
			if w.write(t.Context(), facts{counted: counted{tallies: tallies, done: done}, reached: seen, drains: drains, serves: serves, judged: says}) {
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
		step("nothing is counted yet", nil, false, 5, good, unknown, valid)
		step("once more: nothing to write", nil, false, 0, "ownerreferencepolicies.weir.dev/owners", unknown, valid)
		step("a broken one says why", nil, false, 0, "deletionpolicies.weir.dev/broken", "Ready=False Invalid generation 1: spec.priority",
			"Valid=False Invalid generation 1: spec.priority", "Enforced=False NotValid generation 1: the policy is not in force")
		progress := "BackFilled=False InProgress generation 1: the finalizer is being added to objects that existed before; status.withFinalizer says how far"
		done := "BackFilled=True Done generation 1: all objects that the policy matches are as it asks"
		step("under way", map[policies.PolicyKey]tally{{Kind: "DeletionPolicy", Name: "good"}: {wanted: 5, carrying: 2}}, false, 1, good, unknown, valid, progress, "2 of 5")
		step("further", map[policies.PolicyKey]tally{{Kind: "DeletionPolicy", Name: "good"}: {wanted: 5, carrying: 3}}, false, 1, good, unknown, valid, progress, "3 of 5")
		step("between two passes nothing is forgotten", nil, false, 0, good, unknown, valid, progress, "3 of 5")
		step("done", map[policies.PolicyKey]tally{{Kind: "DeletionPolicy", Name: "good"}: {wanted: 5, carrying: 5}}, true, 1, good, unknown, valid, done, "5 of 5")
		step("nothing left", nil, true, 1, good, unknown, valid, done, "0 of 0")
		step("not of other kinds", nil, true, 0, "ownerreferencepolicies.weir.dev/owners", unknown, valid)
		seen = reachOf(errors.New(canaryDenied+"1"), "1")
		step("the API server asks", nil, true, 4, "ownerreferencepolicies.weir.dev/owners", "Ready=True InForce generation 1: the policy is in force; while Weir does not answer, "+passing, valid, "Enforced=True Reached generation 1: "+saysReached)
		seen = reachOf(errors.New(canaryFailed+"dial tcp: refused"), "1")
		step("it does no more: all policies but broken ones say so", nil, true, 4, good, "Ready=False NotReached generation 1: "+passing, valid, done,
			"Enforced=False NotReached generation 1: the API server does not reach weir's webhook, or gets no answer that it takes, and Weir judges nothing", "0 of 0")
		step("so do waves, which then do not hold", nil, true, 0, "drainpolicies.weir.dev/order", "Ready=False NotReached generation 1: the API server does not reach weir's webhook, or gets no answer that it takes, and Weir judges nothing", valid,
			"Enforced=False NotReached generation 1: the API server does not reach weir's webhook, or gets no answer that it takes, and Weir judges nothing", "all")
		drains = drainsOf(Options{Drains: true, Collects: true})
		step("where Weir empties namespaces itself they hold without it", nil, true, 1, "drainpolicies.weir.dev/order", "Ready=True InForce generation 1: the policy is in force", valid,
			"Enforced=True Drained generation 1: "+saysDrained, "all")
		drains = drainsOf(Options{Collects: true})
		step("where nobody drains none holds", nil, true, 1, "drainpolicies.weir.dev/order", undrained, valid,
			"Enforced=False NotDrained generation 1: weir drains no namespaces, so waves are not enforced", "all")
		drains = drainsOf(Options{Drains: true})
		seen = (&asked{seen: reachOf(nil, "1"), of: &policies.Set{}}).about(state.Set())
		step("what is not known of these policies is not said", nil, true, 0, "drainpolicies.weir.dev/order", undrained, valid,
			"Enforced=False NotDrained generation 1: weir drains no namespaces, so waves are not enforced", "all")
		if r := (&asked{seen: notConfigured, of: state.Set()}).about(state.Set()); r != notConfigured {
			t.Errorf("what is known of these policies is %+v", r)
		}
		serves = served{{Resource: "configmaps"}: true, {Group: "metrics.k8s.io", Resource: "*"}: true}
		resolved := "Resolved=True Served generation 1: every resource that the policy names is served"
		step("it is known what is served", nil, true, 5, "ownerreferencepolicies.weir.dev/owners", "Ready=False NotReached generation 1: "+passing, valid, "Enforced=False NotReached generation 1: the API server does not reach weir's webhook, or gets no answer that it takes, and Weir judges nothing",
			"Resolved=False NotServed generation 1: no API serves spec.match.resources[0].resources[0] (pods)")
		step("a '*' is always", nil, true, 0, "drainpolicies.weir.dev/order", undrained, valid,
			"Enforced=False NotDrained generation 1: weir drains no namespaces, so waves are not enforced", resolved, "all")
		serves[schema.GroupResource{Resource: "*"}] = true
		step("an API is silent that may serve it", nil, true, 2, "ownerreferencepolicies.weir.dev/owners", "Ready=False NotReached generation 1: "+passing, valid, "Enforced=False NotReached generation 1: the API server does not reach weir's webhook, or gets no answer that it takes, and Weir judges nothing",
			resolved)
		seen = notConfigured
		step("nobody has it ask", nil, true, 4, "ownerreferencepolicies.weir.dev/owners", "Ready=False NotConfigured generation 1: "+passing, valid,
			"Enforced=False NotConfigured generation 1: no webhook configuration asks Weir, and Weir judges nothing",
			resolved)
		seen = reachOf(errors.New(canaryDenied+"1"), "1")
		says = map[policies.PolicyKey]reach{{Kind: "OwnerReferencePolicy", Name: "owners"}: {metav1.ConditionFalse, v1beta1.ReasonNeedsWeir, "nothing of it"}}
		step("what only Weir judges is ready", nil, true, 4, "ownerreferencepolicies.weir.dev/owners", "Ready=True InForce generation 1: the policy is in force; while Weir does not answer, "+passing, valid,
			"Enforced=True Reached generation 1: "+saysReached,
			resolved,
			"InProcess=False NeedsWeir generation 1: nothing of it")
		seen = reachOf(errors.New(canaryFailed+"dial tcp: refused"), "1")
		const refused = "requests that the policy matches are refused (failurePolicy Fail)"
		for reason, want := range map[string]string{
			v1beta1.ReasonJudged:    "the API server judges the policy by itself",
			v1beta1.ReasonPartial:   "but for what the API server judges by itself (condition InProcess), " + refused,
			v1beta1.ReasonNeedsWeir: refused,
		} {
			says = map[policies.PolicyKey]reach{{Kind: "DeletionPolicy", Name: "pods"}: {metav1.ConditionFalse, reason, "so"}}
			w.write(t.Context(), facts{reached: seen, judged: says})
			got := statusOf(t, api, "deletionpolicies.weir.dev/pods")[0]
			if want = "Ready=False NotReached generation 1: " + want; got != want {
				t.Errorf("where it is %s: %q, want %q", reason, got, want)
			}
			settlePolicies(state)
		}
	})
}

// What has been counted, of policies that add no finalizer; and Events about what has come to be
// wrong, or right again.
func TestStatusOfWhatWasCounted(t *testing.T) {
	api := apitest.New()
	api.Put("deletionpolicies", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: guard}, spec: {match: {resources: [{apiGroups: [''], resources: [pods]}], resourceNames: [x]}, protection: {confirmation: Required}}}")
	api.Put("drainpolicies", "{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: order}, spec: {waves: [{name: pods, resources: [{apiGroups: [''], resources: [pods]}]}, {name: rest, resources: [{apiGroups: ['*'], resources: ['*']}]}]}}")
	inForce(t, api, func(t *testing.T, state *live.State) {
		client, err := dynamic.NewForConfig(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		w := &statusWriter{client: client, policies: state, metrics: testEnforcementMetrics(t), log: logr.Discard()}
		guard, order := policies.PolicyKey{Kind: "DeletionPolicy", Name: "guard"}, policies.PolicyKey{Kind: "DrainPolicy", Name: "order"}
		step := func(what string, f facts, key string, want ...string) {
			t.Helper()
			if w.write(t.Context(), f) {
				t.Errorf("%s: it failed", what)
			}
			if diff := cmp.Diff(want, statusOf(t, api, key)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			settlePolicies(state)
		}
		const drains, guards = "drainpolicies.weir.dev/order", "deletionpolicies.weir.dev/guard"
		const unknown = "Ready=Unknown NotTried generation 1: it is not known yet whether the policy is enforced"
		const valid = "Valid=True Compiled generation 1: the policy can be judged as it is written"
		step("all waves are named", facts{}, drains, unknown, valid, "pods, rest")
		counts := map[policies.PolicyKey]tally{guard: {matched: 4}, order: {matched: 7}}
		step("objects are counted", facts{counted: counted{tallies: counts, complete: true}}, guards,
			unknown, valid, "4")
		step("namespaces are counted", facts{counted: counted{tallies: counts, complete: true}}, drains, unknown, valid, "7", "pods, rest")
		counts = map[policies.PolicyKey]tally{guard: {matched: 1, unknown: true}}
		step("not all could be counted", facts{counted: counted{tallies: counts, complete: true}}, guards,
			unknown, valid, "4")
		step("back-fill says nothing of a policy that adds no finalizer", facts{counted: counted{done: true}}, guards,
			unknown, valid, "4")
		reached := reachOf(errors.New(canaryFailed+"dial tcp: refused"), "1")
		step("the API server does not get through", facts{reached: reached}, guards,
			"Ready=False NotReached generation 1: requests pass unjudged (failurePolicy Ignore)", valid,
			"Enforced=False NotReached generation 1: the API server does not reach weir's webhook, or gets no answer that it takes, and Weir judges nothing", "4")
		reached = reachOf(errors.New(canaryDenied+"1"), "1")
		step("and does again", facts{reached: reached}, drains, "Ready=True InForce generation 1: the policy is in force", valid,
			"Enforced=True Reached generation 1: "+saysReached, "7", "pods, rest")
	})
}

// Beside the built-in namespace controller waves hold by the webhook only, whatever else this
// process does.
func TestWhoKeepsTheOrderOfWaves(t *testing.T) {
	for want, o := range map[string]Options{
		"": {Drains: true}, v1beta1.ReasonDrained: {Drains: true, Collects: true}, v1beta1.ReasonNotDrained: {Collects: true},
	} {
		if got := drainsOf(o); got.reason != want {
			t.Errorf("%+v: %+v, want %q", o, got, want)
		}
	}
	if got := drainsOf(Options{}); got.reason != v1beta1.ReasonNotDrained {
		t.Errorf("neither: %+v, want %s", got, v1beta1.ReasonNotDrained)
	}
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
			if got := w.write(t.Context(), facts{}); got != c.again {
				t.Errorf("%s: to be tried again: %t, want %t", name, got, c.again)
			}
		})
	}
}

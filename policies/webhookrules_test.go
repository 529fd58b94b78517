package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/policies/cel"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const rulesPolicies = `
{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: a}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}], objectSelector: {matchLabels: {stamp: "yes"}}}, propagation: {default: Foreground}}}
---
{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: b}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments, statefulsets]}], matchConditions: [{name: c, expression: "has(oldObject.spec)"}]}, propagation: {default: Orphan}, failurePolicy: Fail}}
---
{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: c}, spec: {match: {resources: [{apiGroups: [""], resources: [pods, events]}], namespaceSelector: {matchLabels: {team: a}}}, protection: {confirmation: Required}}}
---
{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: broken}, spec: {match: {resources: [{apiGroups: [broken.io], resources: [things]}], matchConditions: [{name: c, expression: "("}]}, protection: {confirmation: Required}}}
---
{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: d}, spec: {match: {kubernetesControllers: Judge, resources: [{apiGroups: ["*"], resources: ["*"]}]}, rules: {dangling: Deny}}}
---
{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: e}, spec: {match: {kubernetesControllers: Judge, resources: [{apiGroups: [apps], resources: [deployments]}], namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [b, a]}]}}, blockOwnerDeletion: Clear, failurePolicy: Fail}}
---
{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: f}, spec: {namespaceSelector: {matchLabels: {team: a}}, waves: [{name: all, resources: [{apiGroups: ["*"], resources: ["*"]}]}]}}
`

// keptKinds are what an API server keeps.
var keptKinds = []schema.GroupResource{
	{Resource: "pods"}, {Resource: "secrets"}, {Group: "apps", Resource: "daemonsets"}, {Group: "apps", Resource: "deployments"},
	{Group: "apps", Resource: "statefulsets"}, {Group: "example.com", Resource: "gizmos"},
}

func TestWebhooksAreWhatThePoliciesNeed(t *testing.T) {
	set := Build(nil, sources(t, "f", rulesPolicies), Options{})
	var got []string
	for _, w := range set.Webhooks(keptKinds, nil) {
		line := fmt.Sprintf("%s %s mutating=%t:", w.Name, w.FailurePolicy, w.Mutating)
		for _, r := range w.Rules {
			line += fmt.Sprintf(" %v %v %v", r.Operations, r.APIGroups, r.Resources)
		}
		for _, c := range w.MatchConditions {
			line += " " + c.Name
		}
		if w.ObjectSelector != nil {
			line += " objects " + metav1.FormatLabelSelector(w.ObjectSelector)
		}
		if w.NamespaceSelector != nil {
			line += " namespaces " + metav1.FormatLabelSelector(w.NamespaceSelector)
		}
		got = append(got, line)
	}
	const elsewhere, there = "kubernetes.io/metadata.name notin (kube-node-lease,kube-system)", "kubernetes.io/metadata.name in (kube-node-lease,kube-system)"
	want := []string{
		"cascade.weir.dev Ignore mutating=false: [DELETE] [] [namespaces] [DELETE] [] [pods secrets] [DELETE] [apiextensions.k8s.io] [customresourcedefinitions] [DELETE] [apps] [daemonsets deployments statefulsets] [DELETE] [example.com] [gizmos] not-system not-terminating namespaces team in (a)",
		"conditions.stamp.weir.dev Ignore mutating=true: [CREATE UPDATE] [apps] [deployments statefulsets deployments/status statefulsets/status] not-system not-terminating whole-object",
		"confirm.weir.dev Ignore mutating=true: [UPDATE] [] [events pods events/status pods/status] not-system not-terminating confirmation-changes namespaces team in (a)",
		"delete.weir.dev Ignore mutating=false: [DELETE] [] [events pods] [DELETE] [apps] [deployments] not-system not-terminating not-controllers not-held",
		"drain.delete.weir.dev Ignore mutating=false: [DELETE] [] [pods secrets] [DELETE] [apps] [daemonsets deployments statefulsets] [DELETE] [example.com] [gizmos] is-namespace-controller not-terminating namespaces team in (a)",
		"eviction.delete.weir.dev Ignore mutating=false: [CREATE] [] [pods/eviction] not-system not-controllers namespaces team in (a)",
		"fail.clear.owners.weir.dev Fail mutating=true: [CREATE UPDATE] [apps] [deployments deployments/status] not-system not-terminating has-references references-change namespaces " + elsewhere + ",team in (a,b)",
		"fail.delete.weir.dev Fail mutating=false: [DELETE] [apps] [deployments statefulsets] not-system not-terminating not-controllers namespaces " + elsewhere,
		"fail.owners.weir.dev Fail mutating=false: [CREATE UPDATE] [apps] [deployments deployments/status] not-system not-terminating has-references references-change namespaces " + elsewhere + ",team in (a,b)",
		"guard.weir.dev Ignore mutating=false: [DELETE] [] [events pods] is-a-collector not-terminating namespaces team in (a)",
		"owners.weir.dev Ignore mutating=false: [CREATE UPDATE] [] [pods secrets secrets/status] [CREATE UPDATE] [apps] [daemonsets deployments statefulsets daemonsets/status deployments/status statefulsets/status] [CREATE UPDATE] [example.com] [gizmos gizmos/status] not-system not-terminating has-references references-change",
		"stamp.weir.dev Ignore mutating=true: [CREATE UPDATE] [apps] [deployments deployments/status] not-system not-terminating whole-object stamp-changes objects stamp in (yes)",
		"system.fail.clear.owners.weir.dev Ignore mutating=true: [CREATE UPDATE] [apps] [deployments deployments/status] not-system not-terminating has-references references-change in-a-namespace namespaces " + there + ",team in (a,b)",
		"system.fail.delete.weir.dev Ignore mutating=false: [DELETE] [apps] [deployments statefulsets] not-system not-terminating not-controllers in-a-namespace namespaces " + there,
		"system.fail.owners.weir.dev Ignore mutating=false: [CREATE UPDATE] [apps] [deployments deployments/status] not-system not-terminating has-references references-change in-a-namespace namespaces " + there + ",team in (a,b)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if w := Build(nil, nil, Options{}).Webhooks(keptKinds, nil); len(w) != 0 {
		t.Errorf("without policies there are webhooks: %v", w)
	}
}

// TestBrokenPolicyLeavesTheConfigurationValid: the API server refuses a whole configuration for one
// rule that it does not accept, and then no policy is asked. What a broken policy with Fail might
// match is refused.
func TestBrokenPolicyLeavesTheConfigurationValid(t *testing.T) {
	for match, want := range map[string]string{
		"scope: namespaced, resources: [{apiGroups: [''], resources: [secrets]}]":                 "/secrets *",
		"scope: Cluster, matches: all, resources: [{apiGroups: [''], resources: [secrets]}]":      "/secrets Cluster",
		"resources: [{resources: [secrets]}]":                                                     "",
		"resources: [{apiGroups: [], resources: [secrets]}]":                                      "",
		"resources: [{apiGroups: ['']}]":                                                          "",
		"resources: [{apiGroups: [''], resources: ['']}]":                                         "",
		"resources: [{apiGroups: [''], resources: ['', secrets]}]":                                "/secrets *",
		"resources: [{apiGroups: [''], resources: [secrets/x, 'secrets/*', 'x*']}]":               "",
		"resources: [{apiGroups: [''], resources: [secrets/x, '*/*', secrets]}]":                  "/secrets *",
		"resources: [{resources: [secrets]}, {apiGroups: [apps, '*'], resources: [deployments]}]": "apps/deployments *",
		"resources: [{apiGroups: [apps], resources: ['*', deployments]}]":                         "apps/daemonsets *, apps/deployments *, apps/statefulsets *",
		"resources: [secrets]": "",
		"resources: []":        "",
	} {
		for _, kind := range []string{"DeletionPolicy", "OwnerReferencePolicy"} {
			does := map[string]string{"DeletionPolicy": "protection: {confirmation: Required, inCascades: Ignore}", "OwnerReferencePolicy": "rules: {dangling: Deny}"}[kind]
			set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: "+kind+", metadata: {name: p}, spec: {failurePolicy: Fail, match: {"+match+"}, "+does+"}}"), Options{})
			var got []string
			for _, w := range set.Webhooks(keptKinds, nil) {
				if w.FailurePolicy != admissionregistrationv1.Fail {
					continue // the twin for the system's namespaces
				}
				for _, r := range w.Rules {
					for _, res := range r.Resources {
						if main, _, isStatus := strings.Cut(res, "/"); !isStatus || !slices.Contains(r.Resources, main) {
							got = append(got, fmt.Sprintf("%s/%s %s", strings.Join(r.APIGroups, ","), res, *r.Scope))
						}
					}
				}
			}
			if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", kind, match, diff)
			}
			s := set.Statuses()[0]
			if s.Ready || s.FailsClosed != (want != "") {
				t.Errorf("%s %s: ready %t, fails closed %t: %s", kind, match, s.Ready, s.FailsClosed, s.Message)
			}
		}
	}
}

// Evictions are judged by protection only, and their object has none of the labels of the pod.
func TestEvictionsComeWherePodsAreProtected(t *testing.T) {
	for rest, want := range map[string]string{
		"protection: {confirmation: Required}":                                           "eviction.delete.weir.dev",
		"protection: {confirmation: Required, requests: [Delete]}":                       "",
		"protection: {confirmation: Required, requests: [Evict]}":                        "eviction.delete.weir.dev",
		"protection: {maxDependents: 0}, failurePolicy: Fail":                            "fail.eviction.delete.weir.devsystem.fail.eviction.delete.weir.dev",
		"protection: {maxDependents: 0}, failurePolicy: Fail, validationActions: [Warn]": "eviction.delete.weir.dev",
		"propagation: {allowed: [Foreground]}":                                           "",
		"protection: {maxDependents: -1}, failurePolicy: Fail":                           "fail.eviction.delete.weir.devsystem.fail.eviction.delete.weir.dev", // it cannot be known what it would say
		"protection: {maxDependents: 0}}} # services":                                    "",
		"protection: {maxDependents: 0}}} # *":                                           "eviction.delete.weir.dev",
	} {
		rest, resource, other := strings.Cut(rest, "}} # ")
		if !other {
			resource = "pods"
		}
		text := strings.ReplaceAll(strings.ReplaceAll(delpol("p", rest), "[apps]", "[\"\"]"), "[deployments]", "['"+resource+"']")
		text = strings.Replace(text, "match: {", "match: {objectSelector: {matchLabels: {a: b}}, ", 1)
		got := ""
		for _, w := range Build(nil, sources(t, "f", text), Options{}).Webhooks(keptKinds, nil) {
			for _, r := range w.Rules {
				if !slices.Contains(r.Resources, "pods/eviction") || w.Webhook == WebhookCascade {
					continue
				}
				got += w.Name
				if w.ObjectSelector != nil || len(r.Resources) != 1 || !slices.Equal(r.Operations, []admissionregistrationv1.OperationType{"CREATE"}) {
					t.Errorf("%s\n%+v", text, w)
				}
			}
		}
		if got != want {
			t.Errorf("%s\nevictions come to %q, want %q", text, got, want)
		}
	}
}

func TestPodsHaveNoStatusThatChangesReferences(t *testing.T) {
	rules := scoped([]v1beta1.ResourceRule{{APIGroups: []string{""}, Resources: []string{"secrets", "pods"}}}, "")
	if got, want := webhookRules(rules, nil, ownerSubresources)[0].Resources, []string{"pods", "secrets", "secrets/status"}; !slices.Equal(got, want) {
		t.Errorf("resources %v, want %v", got, want)
	}
}

func TestWhereNothingAddsTheFinalizerNothingIsAskedAtWrites(t *testing.T) {
	for rest, want := range map[string]bool{
		"propagation: {allowed: [Foreground]}":                                                   false,
		"propagation: {default: Background}":                                                     false,
		"protection: {maxDependents: 0}":                                                         false,
		"propagation: {default: Foreground}":                                                     true,
		"propagation: {dependents: [{apiGroups: [''], resources: [pods], action: Delete}]}":      true,
		"propagation: {default: Background, allowed: [Background]}, failurePolicy: Fail}} # job": true,
	} {
		text := delpol("p", rest)
		if strings.HasSuffix(rest, "job") {
			text = strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(text, "}}\n"), "apps", "batch"), "deployments", "jobs")
			text = strings.ReplaceAll(text, " # job", "")
		}
		set := Build(nil, sources(t, "f", text), Options{})
		got := slices.ContainsFunc(set.Webhooks(keptKinds, nil), func(w WebhookRules) bool { return w.Webhook == WebhookAddFinalizer })
		if got != want {
			t.Errorf("%s: asks to add the finalizer: %t", rest, got)
		}
	}
}

var compiledOnce = map[string]cel.Condition{} // tests of this file are not parallel

func matchConditions(w WebhookRules) ([]cel.Condition, error) {
	var out []cel.Condition
	for _, c := range w.MatchConditions {
		compiled, ok := compiledOnce[c.Expression]
		if !ok {
			var err error
			if compiled, err = cel.Compile(c.Name, c.Expression, w.Name); err != nil {
				return nil, err
			}
			compiledOnce[c.Expression] = compiled
		}
		out = append(out, compiled)
	}
	return out, nil
}

// comes tells whether a request would come to an entry: its rules and its matchConditions, as the
// API server judges them.
func comes(t interface{ Fatal(...any) }, w WebhookRules, q *Question) bool {
	named := slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.Operations, admissionregistrationv1.OperationType(q.Operation)) &&
			(slices.Contains(r.APIGroups, "*") || slices.Contains(r.APIGroups, q.Resource.Group)) &&
			(slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, q.Resource.Resource)) &&
			(*r.Scope == admissionregistrationv1.AllScopes || (*r.Scope == admissionregistrationv1.NamespacedScope) == q.namespaced())
	})
	compiled, err := matchConditions(w)
	if err != nil {
		t.Fatal(err)
	}
	yes, err := all(q, compiled)
	if err != nil {
		t.Fatal(w.Name, err)
	}
	return named && yes && selected(t, w, q)
}

// selected tells whether the selectors of an entry select a request's object, as the API server
// judges them (RB 6.16).
func selected(t interface{ Fatal(...any) }, w WebhookRules, q *Question) bool {
	selects := func(s *metav1.LabelSelector, o map[string]any) bool {
		if s == nil {
			return true
		}
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(w.Name, err)
		}
		return selector.Matches(object(o).labels())
	}
	return (selects(w.ObjectSelector, q.Object) && q.Object != nil || selects(w.ObjectSelector, q.OldObject) && q.OldObject != nil) &&
		(q.Namespace == "" || selects(w.NamespaceSelector, q.NamespaceObject))
}

func TestExemptRequestsCostNoCall(t *testing.T) {
	const quoted = `it's \odd`
	set := Build(nil, sources(t, "f", rulesPolicies), Options{Self: []string{quoted, ""}})
	for name, c := range map[string]struct {
		user   User
		dying  bool
		exempt bool
	}{
		"a user":                   {User{Name: "alice", Groups: []string{"system:masters"}}, false, false},
		"a user without a group":   {User{Name: "alice"}, false, false},
		"a user, too late":         {User{Name: "alice"}, true, true},
		"the collector":            {User{Name: "system:serviceaccount:kube-system:generic-garbage-collector"}, false, true},
		"the namespace controller": {User{Name: namespaceController}, false, true},
		"a node":                   {User{Name: "system:node:n", Groups: []string{"system:nodes"}}, false, true},
		"weir":                     {User{Name: quoted}, false, true},
		"anonymous":                {User{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := map[string]any{}
			if c.dying {
				m["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			}
			q := web(m)
			q.User = c.user
			q.NamespaceObject = map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "a"}}}
			if got := set.exempt(&q); got != c.exempt {
				t.Errorf("exempt: %t", got)
			}
			for _, w := range set.Webhooks(keptKinds, nil) {
				if w.Webhook != WebhookDelete && w.Name != string(WebhookCascade) || strings.HasPrefix(w.Name, "drain") || strings.HasPrefix(w.Name, "eviction") || strings.HasPrefix(w.Name, "system") {
					continue
				}
				if got := comes(t, w, &q); got == c.exempt {
					t.Errorf("comes to %s: %t", w.Name, got)
				}
			}
			all := set.Webhooks(keptKinds, nil)
			drain := all[slices.IndexFunc(all, func(w WebhookRules) bool { return strings.HasPrefix(w.Name, "drain") })]
			if got, want := comes(t, drain, &q), name == "the namespace controller"; got != want {
				t.Errorf("comes to %s: %t", drain.Name, got)
			}
		})
	}
}

func TestAnUpdateThatChangesNothingOfOursCostsNoCall(t *testing.T) {
	set := Build(nil, sources(t, "f", strings.ReplaceAll(rulesPolicies, "has(oldObject.spec)", "true")), Options{})
	q := web(map[string]any{"labels": map[string]any{"stamp": "yes"}, "ownerReferences": []any{map[string]any{"uid": "x"}}})
	q.Operation, q.Object = Update, runtime.DeepCopyJSON(q.OldObject)
	q.Object["spec"] = map[string]any{"replicas": int64(7)}
	for _, w := range set.Webhooks(keptKinds, nil) {
		if comes(t, w, &q) != strings.Contains(w.Name, "conditions") {
			t.Errorf("comes to %s: %t", w.Name, comes(t, w, &q))
		}
	}
}

// neverAsked tells of what the API server asks no webhook about.
func neverAsked(gr schema.GroupResource) bool { return gr.Group == admissionregistrationv1.GroupName }

// The API server asks no webhook about webhook configurations and admission policies: a policy that
// names them would hold nothing.
func TestWhatNoWebhookIsAskedAboutCannotBeNamed(t *testing.T) {
	for _, kind := range []string{"DeletionPolicy", "OwnerReferencePolicy"} {
		for _, resource := range []string{"validatingwebhookconfigurations", "mutatingadmissionpolicies", "'*'"} {
			set := Build(nil, sources(t, "f", policyWith(kind, "resources: [{apiGroups: [apps, admissionregistration.k8s.io], resources: ["+resource+"]}]")), Options{})
			problems := fmt.Sprint(set.Problems())
			if !strings.Contains(problems, "asks no webhook about") || !strings.Contains(problems, "a ValidatingAdmissionPolicy can guard webhook configurations") {
				t.Errorf("a %s about %s: %s", kind, resource, problems)
			}
		}
	}
}

// A '*' names what the API server keeps, as long as it does no harm; the rest has to be spelled
// out, and never gets the finalizer.
func TestWildcardsNameWhatIsKept(t *testing.T) {
	const about = "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: a}, spec: {match: {resources: [RULES]}, propagation: {default: Foreground}, protection: {confirmation: Required}}}\n---\n" +
		"{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: b}, spec: {match: {resources: [RULES]}, rules: {dangling: Deny}}}\n---\n" +
		"{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: c}, spec: {waves: [{name: all, resources: [RULES]}]}}"
	everything := slices.Clone(keptKinds)
	var harmful []schema.GroupResource
	for _, name := range []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses", "bindings", "drainpolicies.weir.dev",
		"validatingwebhookconfigurations.admissionregistration.k8s.io", "validatingadmissionpolicies.admissionregistration.k8s.io", "apiservices.apiregistration.k8s.io",
		"subjectaccessreviews.authorization.k8s.io", "tokenreviews.authentication.k8s.io"} {
		harmful = append(harmful, schema.ParseGroupResource(name))
	}
	everything = append(everything, harmful...)
	// These are judged, and stay without the finalizer: a cluster whose machines are gone has to
	// come up while Weir is down, and from a role that grants what Weir may not do it could not be
	// taken off.
	gone := []schema.GroupResource{{Resource: "nodes"}, {Group: "storage.k8s.io", Resource: "csinodes"}}
	for _, r := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		gone = append(gone, schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: r})
	}
	everything = append(slices.DeleteFunc(everything, func(gr schema.GroupResource) bool { return slices.Contains(gone, gr) }), gone...)
	for rules, explicit := range map[string]bool{"{apiGroups: ['*'], resources: ['*']}": false, "RULES": true} {
		if explicit {
			var all []string
			for _, gr := range everything {
				if neverAsked(gr) {
					continue // a policy that names it is broken
				}
				all = append(all, fmt.Sprintf("{apiGroups: ['%s'], resources: [%s]}", gr.Group, gr.Resource))
			}
			rules = strings.Join(all, ", ")
		}
		set := Build(nil, sources(t, "f", strings.ReplaceAll(about, "RULES", rules)), Options{})
		webhooks := map[Webhook][]schema.GroupResource{}
		for _, w := range set.Webhooks(everything, nil) {
			for _, r := range w.Rules {
				for _, g := range r.APIGroups {
					for _, res := range r.Resources {
						webhooks[w.Webhook] = append(webhooks[w.Webhook], schema.GroupResource{Group: g, Resource: res})
					}
				}
			}
		}
		for _, gr := range everything {
			bad := slices.Contains(harmful, gr)
			named := explicit && !neverAsked(gr)
			want := map[Webhook]bool{WebhookDelete: !bad || named, WebhookOwners: !bad || named, WebhookAddFinalizer: !bad && gr.Resource != "pods" && !slices.Contains(gone, gr)}
			for w, comes := range want {
				if slices.Contains(webhooks[w], gr) != comes {
					t.Errorf("spelled out: %t: %s comes to %s: %t", explicit, gr, w, !comes)
				}
			}
			if some, _ := set.AddsFinalizer(gr); some != want[WebhookAddFinalizer] {
				t.Errorf("spelled out: %t: %s may get the finalizer: %t", explicit, gr, some)
			}
			m, _ := set.FinalizersFor(storedAs(gr.WithVersion("v1")))
			if (m.By != "") != want[WebhookAddFinalizer] {
				t.Errorf("spelled out: %t: %s gets the finalizer by %q", explicit, gr, m.By)
			}
		}
		for w, all := range webhooks {
			if slices.ContainsFunc(all, func(gr schema.GroupResource) bool { return gr.Group == "*" || strings.HasPrefix(gr.Resource, "*") }) {
				t.Errorf("%s: %v", w, all)
			}
		}
	}
}

// Nothing that a policy would have judged may be dropped before it comes to Weir.
func TestMatchConditionsDropNothingThatMatters(t *testing.T) {
	// In the first set no entry looks at every update, so that what the filter of changes drops is
	// not seen elsewhere.
	few, _, _ := strings.Cut(rulesPolicies, "---")
	sets := []*Set{Build(nil, sources(t, "f", few), Options{}), Build(nil, sources(t, "f", rulesPolicies), Options{})}
	mattered := map[Webhook]int{}
	check := func(t *rapid.T) {
		set := sets[rapid.IntRange(0, len(sets)-1).Draw(t, "set")]
		webhooks := set.Webhooks(keptKinds, nil)
		q := web(nil)
		q.Resource.Resource = rapid.SampledFrom([]string{"deployments", "statefulsets", "daemonsets"}).Draw(t, "resource")
		q.Operation = rapid.SampledFrom([]Operation{Create, Update, Delete}).Draw(t, "operation")
		q.User.Name = rapid.SampledFrom([]string{"alice", "system:kube-controller-manager"}).Draw(t, "user")
		q.Facts.Owner = func(OwnerRef, string) Owner { return Owner{Answer: Absent} }
		q.NamespaceObject = map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "team")}}}
		q.Object, q.OldObject = nil, nil
		if q.Operation != Create {
			q.OldObject = anyObject(t, "old")
		}
		if q.Operation != Delete {
			q.Object = anyObject(t, "new")
		}
		if q.Operation == Delete {
			q.DryRun = rapid.Bool().Draw(t, "dry run")
			q.Options = rapid.SampledFrom([]map[string]any{nil, {"propagationPolicy": "Background"}, {"propagationPolicy": "Foreground"}}).Draw(t, "options")
		}
		for _, hook := range []Webhook{WebhookAddFinalizer, WebhookDelete, WebhookOwners, WebhookClear} {
			q.Asked = hook
			d := set.Decide(q)
			if hook == WebhookDelete && !q.DryRun && object(q.OldObject).hasFinalizer() {
				d.Warnings = nil // that it goes as the policy says, and not as was asked, is not worth a call
			}
			if d.Allowed && len(d.Patch) == 0 && !d.Arm && len(d.Warnings) == 0 {
				continue
			}
			if hook == WebhookAddFinalizer && q.Resource.Resource != "deployments" {
				continue // not every set has a policy about them: a finalizer that is there is back-fill's to take off
			}
			if d.Finalizers == RemoveFinalizers && !slices.ContainsFunc(webhooks, func(w WebhookRules) bool { return w.Webhook == hook && selected(t, w, &q) }) {
				continue // as it is of an object that no policy selects, before or after
			}
			if hook == WebhookAddFinalizer && q.Operation == Update {
				before := q
				before.Operation, before.Object, before.OldObject = Create, q.OldObject, nil
				if m, _ := set.FinalizersFor(before); (m.By != "") != object(q.OldObject).hasFinalizer() {
					continue // back-fill's, not this update's
				}
			}
			mattered[hook]++
			if !slices.ContainsFunc(webhooks, func(w WebhookRules) bool { return w.Webhook == hook && comes(t, w, &q) }) {
				t.Fatalf("%s would decide %+v and is not asked", hook, d)
			}
		}
	}
	for range 20 { // times rapid's own number of checks, each time with another seed
		rapid.Check(t, check)
	}
	for _, hook := range []Webhook{WebhookAddFinalizer, WebhookDelete, WebhookOwners, WebhookClear} {
		if mattered[hook] == 0 {
			t.Errorf("no request mattered to %s", hook)
		}
	}
}

// The finalizer holds what it was created with, so the API server need not ask whether it does.
func TestADeleteThatTheFinalizerHoldsCostsNoCall(t *testing.T) {
	held := map[string]any{"finalizers": []any{v1beta1.Finalizer}}
	foreground := delpol("p", "propagation: {default: Foreground}")
	protection := delpol("q", "protection: {confirmation: Required}")
	for name, c := range map[string]struct {
		policies string
		metadata map[string]any
		dryRun   bool
		asked    bool
	}{
		"held":                 {foreground, held, false, false},
		"not held":             {foreground, map[string]any{"finalizers": []any{"a"}}, false, true},
		"no finalizers at all": {foreground, nil, false, true},
		"held for a while": {foreground, map[string]any{"finalizers": []any{v1beta1.Finalizer},
			"annotations": map[string]any{v1beta1.ArmedAtAnnotation: "2026-01-01T00:00:00Z"}}, false, true},
		"a dry run":          {foreground, held, true, true},
		"not all is allowed": {delpol("p", "propagation: {default: Foreground, allowed: [Foreground]}"), held, false, true},
		"some dependents are kept": {delpol("p",
			"propagation: {default: Foreground, dependents: [{apiGroups: [''], resources: [secrets], action: Orphan}]}"), held, false, true},
		"protected as well":        {foreground + protection, held, false, true},
		"braked as well":           {delpol("p", "propagation: {default: Foreground}, brake: {maxObjects: 5}"), held, false, true},
		"on trial":                 {delpol("p", "propagation: {default: Foreground}, validationActions: [Warn]"), held, false, true},
		"others are protected":     {foreground + strings.Replace(protection, "[deployments]", "[statefulsets]", 1), held, false, false},
		"a Job, which carries two": {strings.Replace(foreground, "[apps], resources: [deployments]", "[batch], resources: [jobs]", 1), held, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", c.policies), Options{})
			q := web(c.metadata)
			if strings.Contains(c.policies, "jobs") {
				q.Resource = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
			}
			q.DryRun, q.Options = c.dryRun, map[string]any{"propagationPolicy": "Background"}
			asked := slices.ContainsFunc(set.Webhooks(keptKinds, nil), func(w WebhookRules) bool { return w.Webhook == WebhookDelete && comes(t, w, &q) })
			if asked != c.asked {
				t.Errorf("the API server asks: %t", asked)
			}
		})
	}
}

// TestAnEditOfWhenTheFinalizerWasAddedIsAskedAbout: who writes a new time again and again would
// have each delete be told to come later.
func TestAnEditOfWhenTheFinalizerWasAddedIsAskedAbout(t *testing.T) {
	few, _, _ := strings.Cut(rulesPolicies, "---")
	set := Build(nil, sources(t, "f", few), Options{})
	armed := func(at string) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"name": "web", "namespace": "shop", "uid": "u1", "labels": map[string]any{"stamp": "yes"}, "finalizers": []any{v1beta1.Finalizer},
			"annotations": map[string]any{v1beta1.ArmedAtAnnotation: at},
		}}
	}
	for now, want := range map[string]bool{"a": false, "b": true} {
		q := web(nil)
		q.Operation, q.OldObject, q.Object = Update, armed("a"), armed(now)
		q.NamespaceObject = map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "a"}}}
		asked := slices.ContainsFunc(set.Webhooks(keptKinds, nil), func(w WebhookRules) bool { return w.Webhook == WebhookAddFinalizer && comes(t, w, &q) })
		if asked != want {
			t.Errorf("from a to %s: asked about is %t", now, asked)
		}
	}
}

func anyObject(t *rapid.T, name string) map[string]any {
	m := map[string]any{"name": "web", "namespace": "shop", "uid": "u1"}
	if rapid.Bool().Draw(t, name+" labelled") {
		m["labels"] = map[string]any{"stamp": rapid.SampledFrom([]string{"yes", "no"}).Draw(t, name+" label")}
	}
	if f := rapid.SampledFrom([][]any{nil, {}, {"a"}, {v1beta1.Finalizer}, {"a", v1beta1.Finalizer}}).Draw(t, name+" finalizers"); f != nil {
		m["finalizers"] = f
	}
	if at := rapid.SampledFrom([]string{"none", "", "a", "b"}).Draw(t, name+" armed"); at != "none" {
		m["annotations"] = map[string]any{v1beta1.ArmedAtAnnotation: at}
	}
	if rapid.IntRange(0, 5).Draw(t, name+" dying") == 0 {
		m["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	if n := rapid.IntRange(-1, 2).Draw(t, name+" references"); n >= 0 {
		var refs []any
		for i := range n {
			refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "Pod", "name": fmt.Sprint("p", i), "uid": fmt.Sprint("u", i), "blockOwnerDeletion": rapid.Bool().Draw(t, name+" blocks")})
		}
		m["ownerReferences"] = refs
	}
	o := map[string]any{"metadata": m}
	if rapid.Bool().Draw(t, name+" has spec") {
		o["spec"] = map[string]any{}
	}
	return o
}

func TestRequestIsWhatTheAPIServerMakesOfIt(t *testing.T) {
	dry := true
	req := &admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		RequestKind: &metav1.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, RequestResource: &metav1.GroupVersionResource{Group: "apps", Version: "v1beta1", Resource: "deployments"},
		SubResource: "scale", RequestSubResource: "scale", Name: "web", Namespace: "shop", Operation: admissionv1.Update, DryRun: &dry,
		UserInfo: authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"a", "b"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}},
		Object:   runtime.RawExtension{Raw: []byte(`{"metadata":{"uid":"u"},"n":3}`)}, OldObject: runtime.RawExtension{Raw: []byte(`{}`)},
		Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions"}`)},
	}
	q, err := FromRequest(req)
	if err != nil {
		t.Fatal(err)
	}
	if full, err := q.object.full(q.Object); err != nil || full["n"] != int64(3) {
		t.Errorf("a whole number is %T (%v): to CEL it would be none", full["n"], err)
	}
	bare := req.DeepCopy()
	bare.Object, bare.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	bare.Options = runtime.RawExtension{}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bare)
	if err != nil {
		t.Fatal(err)
	}
	got := variables{&q}.Request()
	want["options"] = map[string]any{"kind": "UpdateOptions"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-apiserver +ours):\n%s", diff)
	}
}

func TestFromRequestRefusesWhatIsNoObject(t *testing.T) {
	for name, c := range map[string]struct{ object, want string }{
		"no JSON":  {"{", "decode oldObject of the request: unexpected end of JSON input"},
		"a list":   {"[]", "decode oldObject of the request: is a list, not an object"},
		"a string": {`"x"`, "decode oldObject of the request: is a string, not an object"},
		"a number": {"1", "decode oldObject of the request: is a number, not an object"},
		"null":     {"null", "judge a DELETE of pods: the request has no oldObject"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromRequest(&admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Resource: metav1.GroupVersionResource{Resource: "pods"}, OldObject: runtime.RawExtension{Raw: []byte(c.object)}})
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

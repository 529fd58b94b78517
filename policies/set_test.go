package policies

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// sources parses policies that must parse.
func sources(t testing.TB, file, text string) []Source {
	t.Helper()
	out, problems := Parse(file, []byte(text))
	for _, p := range problems {
		t.Fatal(p)
	}
	return out
}

// delpol is a DeletionPolicy for deployments with the rest of its spec in flow style.
func delpol(name, rest string) string {
	return fmt.Sprintf("---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: %q}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, %s}}\n", name, rest)
}

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// web is a DELETE of a Deployment.
func web(metadata map[string]any) Question {
	m := map[string]any{"name": "web", "namespace": "shop", "uid": "u1"}
	for k, v := range metadata {
		m[k] = v
	}
	return Question{
		Operation: Delete, User: User{Name: "alice"}, Resource: deployments, Kind: deployments.GroupVersion().WithKind("Deployment"),
		Namespace: "shop", Name: "web",
		OldObject:       map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": m},
		NamespaceObject: map[string]any{"metadata": map[string]any{"name": "shop"}},
		Facts: Facts{Dependents: func(s Search, _ int) (AlsoDeleted, bool) {
			return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 3, Names: []string{"b", "a", "c"}}}}, true
		}},
	}
}

func TestABrokenPolicyNeverHidesTheOthers(t *testing.T) {
	good := delpol("good", "protection: {confirmation: Required}")
	for name, c := range map[string]struct {
		broken  string
		problem string
		refuses bool // even a delete that the good policy accepts
	}{
		"of CEL that does not compile":                               {`{resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: "object."}]}, protection: {confirmation: Required}`, "spec.match.matchConditions[0].expression", false},
		"of CEL that is no yes or no":                                {`{resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: "1"}]}, protection: {confirmation: Required}`, "must evaluate to bool", false},
		"of CEL with a variable it cannot have":                      {`{resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: "params.x == 1"}]}, protection: {confirmation: Required}`, "undeclared reference to 'params'", false},
		"of a selector that makes no sense":                          {`{resources: [{apiGroups: [apps], resources: [deployments]}], objectSelector: {matchExpressions: [{key: a, operator: Like}]}}, protection: {confirmation: Required}`, "spec.match.objectSelector.matchExpressions[0].operator", false},
		"of nothing asked for":                                       {`{resources: [{apiGroups: [apps], resources: [deployments]}]}`, "a policy without any asks for nothing", false},
		"of a field that nobody knows":                               {`{resources: [{apiGroups: [apps], resources: [deployments]}]}, protection: {confirmation: Required}, protect: {}`, "spec.protect: unknown field", false},
		"with failurePolicy Fail":                                    {`{resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: c, expression: "object."}]}, protection: {confirmation: Required}, failurePolicy: Fail`, "spec.match.matchConditions[0].expression", true},
		"with failurePolicy Fail and a selector that makes no sense": {`{resources: [{apiGroups: [apps], resources: [deployments]}], objectSelector: {matchExpressions: [{key: a, operator: Like}]}}, protection: {confirmation: Required}, failurePolicy: Fail`, "operator", true},
		"that has no type right":                                     {`[1, 2]`, "spec.match", false},
		"with a name that is none":                                   {`{resources: [{apiGroups: [apps], resources: [deployments]}]}, protection: {confirmation: Required}`, "", false},
		"with failurePolicy Fail for another":                        {`{resources: [{apiGroups: [apps], resources: [daemonsets]}], matchConditions: [{name: c, expression: "object."}]}, protection: {confirmation: Required}, failurePolicy: Fail`, "spec.match.matchConditions[0].expression", false},
	} {
		t.Run(name, func(t *testing.T) {
			polname := "broken"
			if name == "with a name that is none" {
				polname, c.problem = "Not A Name", "metadata.name"
			}
			bad := fmt.Sprintf("---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: %q}, spec: {match: %s}}\n", polname, c.broken)
			set := Build(nil, sources(t, "f.yaml", bad+good), Options{})
			var text []string
			for _, p := range set.Problems() {
				text = append(text, p.String())
			}
			if !strings.Contains(strings.Join(text, "\n"), c.problem) || len(text) == 0 {
				t.Errorf("problems %q, want one with %q", text, c.problem)
			}
			for _, st := range set.Statuses() {
				if st.Ready != (st.Policy.Name == "good") || st.Ready != (st.Message == "") {
					t.Errorf("status %+v", st)
				}
			}
			if d := set.Decide(web(nil)); d.Allowed || !strings.Contains(d.Message, `DeletionPolicy "good"`) {
				t.Errorf("the good policy is not heard: %+v", d)
			}
			d := set.Decide(web(map[string]any{"annotations": map[string]any{v1beta1.ConfirmDeleteAnnotation: "u1"}}))
			if d.Allowed == c.refuses {
				t.Errorf("allowed: %t: %s", d.Allowed, d.Message)
			}
		})
	}
}

func TestSetCompilesOnlyWhatChanged(t *testing.T) {
	two := delpol("a", "protection: {maxDependents: 1}") + delpol("b", "protection: {maxDependents: 1}")
	first := Build(nil, sources(t, "f.yaml", two), Options{})
	again := Build(first, sources(t, "f.yaml", two), Options{})
	if again.policies[0] != first.policies[0] || again.policies[1] != first.policies[1] {
		t.Error("an unchanged policy was compiled again")
	}
	changed := Build(again, sources(t, "f.yaml", delpol("a", "protection: {maxDependents: 1}")+delpol("b", "protection: {maxDependents: 9}")), Options{})
	if changed.policies[0] != first.policies[0] {
		t.Error("a policy was compiled again because another changed")
	}
	if changed.policies[1] == first.policies[1] {
		t.Error("a changed policy was not compiled again")
	}
	if d := first.Decide(web(nil)); d.Allowed || strings.Count(d.Message, "DeletionPolicy") != 2 {
		t.Errorf("the first set changed: %s", d.Message)
	}
	if d := changed.Decide(web(nil)); d.Allowed || strings.Count(d.Message, "DeletionPolicy") != 1 {
		t.Errorf("the new set does not know the change: %s", d.Message)
	}
}

func TestAnObjectTakesThePlaceOfAFile(t *testing.T) {
	file := sources(t, "f.yaml", delpol("a", "protection: {maxDependents: 0}"))
	object := Source{Object: sources(t, "x", delpol("a", "protection: {maxDependents: 100}"))[0].Object}
	for name, list := range map[string][]Source{"file first": {file[0], object}, "object first": {object, file[0]}} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, list, Options{})
			if d := set.Decide(web(nil)); !d.Allowed {
				t.Errorf("the file's policy is in force: %s", d.Message)
			}
			want := `f.yaml:1: DeletionPolicy "a": metadata.name: not in force: an object of the API server has a policy of this kind and name`
			if p := set.Problems(); len(p) != 1 || p[0].String() != want {
				t.Errorf("problems %v", p)
			}
		})
	}
}

func TestDecideLeavesTheQuestionAloneAndRepeatsItself(t *testing.T) {
	set := shippedSet(t)
	q := web(map[string]any{"finalizers": []any{"x"}, "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u2", "blockOwnerDeletion": true}}})
	for _, op := range []Operation{Create, Update, Delete} {
		q := q
		q.Operation = op
		switch op {
		case Create:
			q.Object, q.OldObject = q.OldObject, nil
		case Update:
			q.Object, q.OldObject = q.OldObject, map[string]any{"metadata": map[string]any{"name": "web"}}
		}
		before, old := runtime.DeepCopyJSON(q.Object), runtime.DeepCopyJSON(q.OldObject)
		first := set.Decide(q)
		if d := cmp.Diff(before, q.Object) + cmp.Diff(old, q.OldObject); d != "" {
			t.Errorf("%s: the question was changed: %s", op, d)
		}
		for range 20 {
			if next := set.Decide(q); !reflect.DeepEqual(first, next) {
				t.Fatalf("%s: two answers (-first +next):\n%s", op, cmp.Diff(first, next))
			}
		}
	}
}

func TestAQuestionThatMakesNoSenseIsNotAllowed(t *testing.T) {
	set := Build(nil, nil, Options{})
	for name, q := range map[string]Question{
		"nothing":                  {},
		"a create without object":  {Operation: Create},
		"an update without before": {Operation: Update, Object: map[string]any{}},
		"a delete of nothing":      {Operation: Delete},
		"a connection":             {Operation: "CONNECT"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := set.Decide(q); d.Allowed || d.Code != 400 || d.Message == "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestPropagationFollowsWhatWasAskedAndThenThePolicy(t *testing.T) {
	pvc, pods := schema.GroupResource{Resource: "persistentvolumeclaims"}, schema.GroupResource{Resource: "pods"}
	const foreground = "propagation: {default: Foreground, dependents: [{apiGroups: [''], resources: [persistentvolumeclaims], action: Orphan}]}"
	jobs := func(rest string) string {
		return strings.Replace(strings.Replace(delpol("p", "propagation: {default: Background, allowed: [Foreground, Background]}"+rest), "apps", "batch", 1), "deployments", "jobs", 1)
	}
	for name, c := range map[string]struct {
		policies  string
		finalizer string
		want      v1beta1.PropagationPolicy
		keepsPVC  bool
	}{
		"nothing asked, a default":                 {delpol("p", foreground), "", v1beta1.Foreground, true},
		"Orphan asked":                             {delpol("p", foreground), "orphan", v1beta1.Orphan, true},
		"Foreground asked, no default":             {delpol("p", "propagation: {allowed: [Foreground]}"), "foregroundDeletion", v1beta1.Foreground, false},
		"nothing asked, no default":                {delpol("p", "propagation: {allowed: [Foreground]}"), "", v1beta1.Background, false},
		"no policy any more":                       {"", "foregroundDeletion", v1beta1.Foreground, false},
		"a job that was asked to orphan":           {jobs(""), "orphan", v1beta1.Orphan, true},
		"a job by the finalizer that Weir gave it": {jobs(""), "foregroundDeletion", v1beta1.Foreground, false},
		"a job that was asked for Background":      {jobs(""), "", v1beta1.Background, false},
	} {
		t.Run(name, func(t *testing.T) {
			finalizers := []any{v1beta1.Finalizer}
			if c.finalizer != "" {
				finalizers = append(finalizers, c.finalizer)
			}
			q := web(map[string]any{"finalizers": finalizers, "deletionTimestamp": "2026-01-01T00:00:00Z"})
			if strings.Contains(name, "job") {
				q.Resource = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
			}
			s := Build(nil, sources(t, "f", c.policies), Options{}).Enforce(q)
			if s.Propagation != c.want || s.Keeps(pvc) != c.keepsPVC || s.Keeps(pods) != (c.want == v1beta1.Orphan) {
				t.Errorf("%s, keeps PVCs %t and pods %t", s.Propagation, s.Keeps(pvc), s.Keeps(pods))
			}
		})
	}
}

func TestARefusalOfVeryMuchIsStillReadable(t *testing.T) {
	set := shippedSet(t)
	var refs []any
	for i := range 500 {
		refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "Pod", "name": fmt.Sprint("p", i), "uid": fmt.Sprint("u", i)})
	}
	q := web(map[string]any{"uid": "u0", "ownerReferences": refs})
	q.Operation, q.Object, q.OldObject = Create, q.OldObject, nil
	q.Facts.Owner = func(OwnerRef, string) Owner { return Owner{Answer: Absent} }
	q.Facts.Depends = func(_, _ types.UID) bool { return true }
	d := set.Decide(q)
	if len(d.Warnings) != mostTexts+1 || d.Warnings[mostTexts] != "… and 490 more" || strings.Count(d.Message, "\n") != mostTexts || len(d.Message) > 4000 {
		t.Errorf("%d warnings, the last %q; message:\n%s", len(d.Warnings), d.Warnings[len(d.Warnings)-1], d.Message)
	}
}

func TestNeedsAreAskedForOnceEach(t *testing.T) {
	set := Build(nil, sources(t, "f", `
{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: a}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, blockOwnerDeletion: RequirePermission, changes: RequirePermission}}
---
{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: b}, spec: {match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}, blockOwnerDeletion: RequirePermission, changes: RequirePermission}}
`), Options{})
	q := web(map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u2", "blockOwnerDeletion": true}}})
	q.Operation, q.Object, q.OldObject = Update, q.OldObject, map[string]any{"metadata": map[string]any{"name": "web"}}
	q.Facts.Kind = func(schema.GroupVersionKind) Kind {
		return Kind{Known: true, Served: true, Resources: []schema.GroupResource{{Group: "example.com", Resource: "widgets"}, {Group: "example.com", Resource: "gadgets"}}}
	}
	del := Access{Verb: "delete", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}
	widgets := Access{Verb: "update", Group: "example.com", Version: "v1", Resource: "widgets", Subresource: "finalizers", Name: "w"}
	gadgets := widgets
	gadgets.Resource = "gadgets"
	if diff := cmp.Diff([]Access{del, everyFinalizer}, set.Decide(q).Needs); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	q.Answers = map[Access]Answer{del: true, everyFinalizer: false}
	if diff := cmp.Diff([]Access{widgets, gadgets}, set.Decide(q).Needs); diff != "" {
		t.Errorf("then (-want +got):\n%s", diff)
	}
	q.Answers[widgets], q.Answers[gadgets] = true, false
	d := set.Decide(q)
	if len(d.Needs) > 0 || d.Allowed || strings.Count(d.Message, "gadgets/finalizers") != 4 || strings.Contains(d.Message, "widgets") {
		t.Errorf("permission on all resources of a kind is needed: %+v", d)
	}
	if strings.Contains(d.Message, "Role in namespace") {
		t.Errorf("the owner is cluster-scoped: %s", d.Message)
	}
}

func TestDrainKnowsTheWaveOfEverything(t *testing.T) {
	set := shippedSet(t)
	d := set.DrainOf(map[string]any{"metadata": map[string]any{"name": "shop"}})
	if d == nil || len(d.Waves) != 6 || d.Waves[0].Name != archiveWave || d.Policy != "drain-order" {
		t.Fatalf("%+v", d)
	}
	// A finalizer on what goes before pods must not keep these running; nothing else is hurried.
	for _, w := range d.Waves {
		if before := w.Name == "custom-resources" || w.Name == "workloads"; before != (w.Timeout > 0) || before != w.Proceed {
			t.Errorf("wave %s proceeds %t after %s", w.Name, w.Proceed, w.Timeout)
		}
	}
	for gr, want := range map[string]string{
		"clusters.postgresql.cnpg.io": "custom-resources", "deployments.apps": "workloads", "pods": "pods",
		"services": "services-and-storage", "networkpolicies.networking.k8s.io": "permissions-and-the-rest",
		"unheard.of.example.com": "permissions-and-the-rest", "events": "permissions-and-the-rest",
	} {
		if got := d.Waves[d.Wave(schema.ParseGroupResource(gr), nil)].Name; got != want {
			t.Errorf("%s goes with wave %s, want %s", gr, got, want)
		}
	}
	labelled := Build(nil, sources(t, "f", `
{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: b}, spec: {waves: [{name: all, resources: [{apiGroups: ["*"], resources: ["*"]}]}]}}
---
{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: a}, spec: {namespaceSelector: {matchLabels: {env: prod}}, waves: [{name: one, timeoutSeconds: 90, onTimeout: Proceed, objectSelector: {matchLabels: {x: "yes"}}, resources: [{apiGroups: ["*"], resources: ["*"]}]}, {name: two, resources: [{apiGroups: [""], resources: [pods]}]}]}}
`), Options{})
	for _, p := range labelled.Problems() {
		t.Error(p)
	}
	if d := labelled.DrainOf(map[string]any{}); d.Policy != "b" {
		t.Errorf("policy %s selects a namespace without the label", d.Policy)
	}
	d = labelled.DrainOf(map[string]any{"metadata": map[string]any{"labels": map[string]any{"env": "prod"}}})
	if d.Policy != "a" || !d.Waves[0].Proceed || d.Waves[0].Timeout.String() != "1m30s" || d.Waves[1].Timeout != 0 {
		t.Errorf("%+v", d)
	}
	one := func(name, rest string) string {
		return fmt.Sprintf("---\n{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: %s}, spec: {%swaves: [{name: all, resources: [{apiGroups: ['*'], resources: ['*']}]}]}}\n", name, rest)
	}
	several := Build(nil, sources(t, "f", one("a", "")+one("c", "priority: 7, ")+one("b", "priority: 7, ")), Options{})
	if d := several.DrainOf(map[string]any{}); d.Policy != "b" {
		t.Errorf("of several policies %s applies, want the first by name of those with the highest priority", d.Policy)
	}
	labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{"x": "yes"}}}
	if d.Wave(schema.GroupResource{Resource: "secrets"}, labels) != 0 || d.Wave(schema.GroupResource{Resource: "secrets"}, nil) != 1 {
		t.Error("the selector of a wave is not heard")
	}
	if got := d.WavesOf(schema.GroupResource{Resource: "pods"}); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("pods can go with waves %v", got)
	}
	if got := set.DrainOf(nil).WavesOf(schema.GroupResource{Resource: "pods"}); !slices.Equal(got, []int{2}) {
		t.Errorf("pods go with waves %v by the shipped order", got)
	}
}

func TestNamespaceThatNoControllerDrainsIsNotHeldUpForGood(t *testing.T) {
	set := shippedSet(t)
	deleted := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		annotations map[string]any
		after       time.Duration
		want        bool // held
	}{
		"at once":                 {nil, 0, true},
		"not yet drained":         {nil, 2 * time.Minute, true},
		"never drained":           {nil, 2*time.Minute + time.Second, false},
		"a copied wave, no drain": {map[string]any{v1beta1.DrainAnnotation: "pods", v1beta1.DrainSinceAnnotation: "2025-01-01T00:00:00Z"}, time.Hour, false},
		"being drained for a day": {map[string]any{v1beta1.DrainAnnotation: "pods", v1beta1.DrainSinceAnnotation: "2026-01-01T00:00:01Z"}, 24 * time.Hour, true},
	} {
		d := set.Decide(Question{
			Operation: Delete, User: User{Name: namespaceController}, Namespace: "shop", Name: "key",
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, OldObject: map[string]any{},
			NamespaceObject: map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": c.annotations}},
			Now:             deleted.Add(c.after),
		})
		if d.Allowed == c.want {
			t.Errorf("%s: allowed=%t %s", name, d.Allowed, d.Message)
		}
	}
}

// Without --use-service-account-credentials all controllers are one user. The namespace controller
// is known by how it deletes, and no one else is held up whom a cascade, or a rollout, waits for.
func TestNamespaceControllerIsKnownUnderOneIdentity(t *testing.T) {
	const background = "Background"
	set := shippedSet(t)
	for name, c := range map[string]struct {
		user, object string
		options      map[string]any
		want         bool // held
	}{
		"a collection":                    {"system:kube-controller-manager", "", asking(background), true},
		"one by one":                      {"system:kube-controller-manager", "key", asking(background), true},
		"the collector":                   {"system:kube-controller-manager", "key", map[string]any{"propagationPolicy": background, "preconditions": map[string]any{"uid": "u"}}, false},
		"another controller":              {"system:kube-controller-manager", "key", map[string]any{}, false},
		"another, without options":        {"system:kube-controller-manager", "key", nil, false},
		"the scheduler":                   {"system:kube-scheduler", "", asking(background), false},
		"a user":                          {"alice", "", asking(background), false},
		"the namespace controller itself": {namespaceController, "key", nil, true},
		"the collector itself":            {systemUsers[1], "", asking(background), false},
	} {
		q := Question{
			Operation: Delete, User: User{Name: c.user}, Namespace: "shop", Name: c.object, Options: c.options,
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, OldObject: map[string]any{"metadata": map[string]any{"name": "key"}},
			NamespaceObject: map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}},
			Now:             time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC),
		}
		if d := set.Decide(q); d.Allowed == c.want {
			t.Errorf("%s: held: %t", name, !d.Allowed)
		}
		for _, w := range set.Webhooks(keptKinds, nil) {
			if strings.HasPrefix(w.Name, "drain.") && comes(t, w, &q) != c.want {
				t.Errorf("%s: comes to %s: %t", name, w.Name, !c.want)
			}
		}
	}
}

// The webhook holds what the controller has sealed, and goes by the API server's clock.
func TestForgedWaveLetsNothingThrough(t *testing.T) {
	set := shippedSet(t)
	ns := map[string]any{"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": map[string]any{
		v1beta1.DrainAnnotation: "pods", v1beta1.DrainSinceAnnotation: "2026-01-01T00:00:01Z", v1beta1.DrainSealAnnotation: "s"}}
	for name, c := range map[string]struct {
		sealed func(text, seal string) bool
		server time.Duration // after the deletion, by the API server's clock
		want   bool          // held
	}{
		"sealed":                    {func(text, seal string) bool { return seal == "s" && text == "drain\nu\npods\n2026-01-01T00:00:01Z" }, time.Minute, false},
		"forged":                    {func(string, string) bool { return false }, time.Minute, true},
		"forged, and nobody drains": {func(string, string) bool { return false }, 3 * time.Minute, false},
		"no key":                    {nil, time.Minute, false},
		"to come by the server's":   {nil, -time.Minute, true},
	} {
		d := set.Decide(Question{
			Operation: Delete, User: User{Name: namespaceController}, Namespace: "shop", Name: "job",
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, OldObject: map[string]any{},
			NamespaceObject: map[string]any{"metadata": ns}, Sealed: c.sealed,
			Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.server),
		})
		if d.Allowed == c.want {
			t.Errorf("%s: allowed=%t %s", name, d.Allowed, d.Message)
		}
	}
}

func TestWhatWasWrittenBeforeTheDeletionIsNotTheCurrentWave(t *testing.T) {
	d := shippedSet(t).DrainOf(nil)
	for name, c := range map[string]struct {
		deleted, wave, since string
		want                 int
		dated                bool
	}{
		"alive":                    {"", "pods", "2026-01-01T00:00:01Z", 0, false},
		"nothing written":          {"2026-01-01T00:00:00Z", "", "", 0, false},
		"no time":                  {"2026-01-01T00:00:00Z", "pods", "", 2, false},
		"not a time":               {"2026-01-01T00:00:00Z", "pods", "now", 2, false},
		"written at once":          {"2026-01-01T00:00:00Z", "pods", "2026-01-01T00:00:00Z", 2, true},
		"written later":            {"2026-01-01T00:00:00Z", "pods", "2026-01-01T00:01:00Z", 2, true},
		"by a clock ahead":         {"2026-01-01T00:00:00Z", "pods", "2026-01-01T00:01:10Z", 2, true},
		"to come":                  {"2026-01-01T00:00:00Z", "pods", "2026-01-01T00:01:11Z", 0, false},
		"written before":           {"2026-01-01T00:00:00Z", "pods", "2025-12-31T23:59:59Z", 0, false},
		"a wave that is not there": {"2026-01-01T00:00:00Z", "others", "2026-01-01T00:01:00Z", 0, false},
	} {
		meta := map[string]any{"annotations": map[string]any{v1beta1.DrainAnnotation: c.wave, v1beta1.DrainSinceAnnotation: c.since}}
		if c.deleted != "" {
			meta["deletionTimestamp"] = c.deleted
		}
		now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
		if wave, since := d.Current(map[string]any{"metadata": meta}, now, func(string, string) bool { return false }); wave != 0 || !since.IsZero() {
			t.Errorf("%s: not sealed, and at wave %d since %s", name, wave, since)
		}
		wave, since := d.Current(map[string]any{"metadata": meta}, now, nil)
		if wave != c.want || since.IsZero() == c.dated {
			t.Errorf("%s: at wave %d since %s", name, wave, since)
		}
	}
}

func anyList(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

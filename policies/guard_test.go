package policies

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// The delete of a protected object is judged whoever carries it out, and the API server brings to
// Weir what is, and nothing else.
func TestCollectorsAreJudgedByWhatGuards(t *testing.T) {
	confirmed := map[string]any{"annotations": map[string]any{v1beta1.ConfirmDeleteAnnotation: "u1"}}
	uid := map[string]any{"propagationPolicy": "Background", "preconditions": map[string]any{"uid": "u1"}}
	for name, c := range map[string]struct {
		policy  string // of Deployments
		user    string
		meta    map[string]any
		with    func(*Question)
		refuses string
	}{
		"the built-in collector":            {"protection: {confirmation: Required}", GarbageCollector, nil, nil, `deployments.apps "web" in namespace "shop" may not be deleted without confirmation (DeletionPolicy "p"). To delete it, confirm`},
		"the built-in namespace controller": {"protection: {confirmation: Required}", namespaceController, nil, func(q *Question) { q.Name = "" }, "without confirmation"},
		"in a namespace that terminates": {"protection: {confirmation: Required}", namespaceController, nil, func(q *Question) {
			q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "deletionTimestamp": "now"}}
		}, "without confirmation"},
		"a person, in a namespace that terminates": {"protection: {confirmation: Required}", "alice", nil, func(q *Question) {
			q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "deletionTimestamp": "now"}}
		}, "without confirmation"},
		"Weir":                               {"protection: {confirmation: Required}", "weir", nil, nil, "without confirmation"},
		"another controller":                 {"protection: {confirmation: Required}", "system:serviceaccount:kube-system:replicaset-controller", nil, nil, ""},
		"the collector, under one identity":  {"protection: {confirmation: Required}", oneIdentity, nil, func(q *Question) { q.Options = uid }, "without confirmation"},
		"another, under one identity":        {"protection: {confirmation: Required}", oneIdentity, nil, func(q *Question) { q.Options = nil }, ""},
		"a collector that is excluded":       {"protection: {confirmation: Required}", GarbageCollector, nil, func(q *Question) { q.User.Groups = []string{"trusted"} }, ""},
		"what is confirmed":                  {"protection: {confirmation: Required}", GarbageCollector, confirmed, nil, ""},
		"what is being deleted":              {"protection: {confirmation: Required}", GarbageCollector, map[string]any{"deletionTimestamp": "now"}, nil, ""},
		"where cascades are ignored":         {"protection: {confirmation: Required, inCascades: Ignore}", GarbageCollector, nil, nil, ""},
		"a limit":                            {"protection: {maxDependents: 1}", GarbageCollector, nil, nil, "2 objects would also be deleted, and the policy allows 1"},
		"a limit that is not about cascades": {"protection: {maxDependents: 1, inCascades: Ignore}", GarbageCollector, nil, nil, ""},
		"propagation":                        {"propagation: {default: Orphan, allowed: [Orphan]}", GarbageCollector, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}], excludeGroups: [trusted]}, " + c.policy + "}}\n"
			set := Build(nil, sources(t, "f", text), Options{Self: []string{"weir"}})
			q := web(c.meta)
			q.User = User{Name: c.user}
			q.Facts.Dependents = func(s Search, _ int) (AlsoDeleted, bool) {
				return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 2}}}, true
			}
			if c.with != nil {
				c.with(&q)
			}
			d, asked := asTheAPIServer(t, set, WebhookGuard, q)
			if c.user == "alice" { // is asked about as ever
				d, asked = asTheAPIServer(t, set, WebhookDelete, q)
			}
			if d.Allowed != (c.refuses == "") || !strings.Contains(d.Message, c.refuses) || c.refuses != "" && len(asked) != 1 {
				t.Errorf("allowed=%t %s\nasked %v, want %q", d.Allowed, d.Message, asked, c.refuses)
			}
		})
	}
}

// What Kubernetes puts into every namespace, and what tells Weir whether another collector works,
// is protected by no policy.
func TestNothingGuardsWhatHasToGo(t *testing.T) {
	set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}")), Options{})
	for name, refused := range map[string]bool{"kube-root-ca.crt": false, v1beta1.CollectorCanary: false, "other": true} {
		q := deletes(Facts{})
		q.Asked, q.User.Name, q.Resource, q.Kind, q.Name, q.OldObject = WebhookGuard, GarbageCollector, configMaps, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, name, configMap(name, nil)
		if d := set.Decide(q); d.Allowed == refused {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if !set.Guards(configMaps.GroupResource()) || set.Guards(schema.GroupResource{Resource: "secrets"}) {
		t.Error("the set guards what no policy is about, or not what one is about")
	}
}

// References are up to users: where there are so many that what would also be deleted cannot be
// counted, it is refused, whatever the failurePolicy.
func TestWhatCannotBeCountedIsRefused(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("few", "protection: {maxDependents: 5}")+delpol("many", "protection: {maxDependents: 100, confirmation: Required}")), Options{})
	q := web(nil)
	q.Facts.Dependents = func(s Search, accepted int) (AlsoDeleted, bool) {
		if accepted != 100 {
			t.Errorf("counted as far as %d are accepted", accepted)
		}
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 20}}, Cut: true}, false
	}
	d := set.Decide(q)
	for _, says := range []string{`20 objects would also be deleted, and the policy allows 5`, `too many references lead to it to count which objects would also be deleted (DeletionPolicy "many"). To keep them: kubectl delete`} {
		if d.Allowed || !strings.Contains(d.Message, says) {
			t.Errorf("allowed=%t %s\nwant %s", d.Allowed, d.Message, says)
		}
	}
}

// TestGuardAsksNothingOfTheGraph: what judges the object at the last moment cannot be starved by
// what others have the graph looked through for.
func TestGuardAsksNothingOfTheGraph(t *testing.T) {
	set := Build(nil, sources(t, "f", delpol("p", "protection: {confirmation: Required}")), Options{})
	q := web(nil)
	q.Asked, q.User.Name = WebhookGuard, GarbageCollector
	facts := reflect.ValueOf(&q.Facts).Elem()
	for i := range facts.NumField() {
		f := facts.Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value {
			t.Errorf("%s is asked", facts.Type().Field(i).Name)
			return make([]reflect.Value, f.Type().NumOut())
		}))
	}
	if d := set.Decide(q); d.Allowed {
		t.Errorf("%+v", d)
	}
}

// TestLimitsCountWhatHangsOnWhatIsHeld: five objects of a definition may own a thousand pods each,
// and an empty Namespace a full one.
func TestLimitsCountWhatHangsOnWhatIsHeld(t *testing.T) {
	few := AlsoDeleted{Kinds: []KindCount{{Resource: "teams.example.com", Count: 5}}}
	many := AlsoDeleted{Kinds: append([]KindCount{{Resource: "pods", Count: 5000}}, few.Kinds...)}
	crd := Question{Operation: Delete, Kind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Resource: definitions.WithVersion("v1"), Name: "teams.example.com", User: User{Name: "alice"},
		OldObject: map[string]any{"metadata": map[string]any{"name": "teams.example.com", "uid": "uid-x"}, "spec": map[string]any{"group": "example.com", "names": map[string]any{"plural": "teams"}}}}
	for name, q := range map[string]Question{"definition": crd, "namespace": namespace(Facts{})} {
		q.Facts = Facts{
			Content:   func(string) (AlsoDeleted, bool) { return few, true },
			Instances: func(schema.GroupResource) (AlsoDeleted, bool) { return few, true },
			Dependents: func(s Search, accepted int) (AlsoDeleted, bool) {
				if (s.Namespace == "shop") == (s.Instances.Resource == "teams") || s.UID == "" || accepted != 20 {
					t.Errorf("%s: counted %+v, %d are accepted", name, s, accepted)
				}
				return many, true
			},
		}
		set := Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: ['*'], resources: [customresourcedefinitions, namespaces]}]}, protection: {maxDependents: 20}}}"), Options{})
		if d := set.Decide(q); d.Allowed || !strings.Contains(d.Message, "5005 objects would also be deleted, and the policy allows 20: 5000 pods; 5 teams.example.com") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

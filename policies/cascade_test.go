package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies/v1beta1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// protects is a policy about ConfigMaps.
func protects(name, match, rest string) string {
	return fmt.Sprintf("---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}]%s}, protection: {%s}}\n", name, match, rest)
}

// configMap is one in namespace shop.
func configMap(name string, more map[string]any) map[string]any {
	m := map[string]any{"name": name, "namespace": "shop", "uid": "uid-" + name}
	for k, v := range more {
		m[k] = v
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m}
}

// catching are facts by which ConfigMaps go with whatever is deleted, and every kind of a name is
// served in version v1.
func catching(complete bool, names ...string) Facts {
	one := Caught{Resource: configMaps, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	return Facts{
		Catch: func(_ types.UID, kept, wanted func(schema.GroupResource) bool) Catch {
			c := Catch{Complete: complete}
			if !wanted(configMaps.GroupResource()) || kept(configMaps.GroupResource()) {
				return c
			}
			for _, n := range names {
				o := one
				o.Namespace, o.Name, o.UID = "shop", n, types.UID("uid-"+n)
				c.Objects = append(c.Objects, o)
			}
			return c
		},
		Holds: func(s Search, wanted func(schema.GroupResource) bool) ([]Caught, bool) {
			if len(names) == 0 || s.Namespace == "empty" || !wanted(configMaps.GroupResource()) {
				return nil, complete
			}
			return []Caught{one}, complete
		},
		Dependents: func(s Search, _ int) (AlsoDeleted, bool) {
			if s.UID == "uid-owner" {
				return AlsoDeleted{Kinds: []KindCount{{Resource: "secrets", Count: 2}}}, true
			}
			return AlsoDeleted{}, true
		},
		Kind: func(gvk schema.GroupVersionKind) Kind {
			return Kind{Known: gvk.Group != "down.example.com", Served: gvk.Group == "", Namespaced: gvk.Kind != "Node", Resources: []schema.GroupResource{{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}}}
		},
	}
}

// carriedOut is a Cascade with all that it asks for read, and everything told.
func carriedOut(c *Cascade, objects ...map[string]any) Decision {
	if c == nil {
		return Decision{Allowed: true}
	}
	for _, l := range c.Lookups() {
		for _, o := range objects {
			if l.Goes(object(o).name(), object(o).uid()) && c.Saw(&l, o, c.q.NamespaceObject) {
				break
			}
		}
	}
	d := c.Decide(nil)
	answers := map[Access]Answer{}
	for _, a := range d.Discloses {
		answers[a] = true
	}
	return c.Decide(answers)
}

// deletes is the DELETE of a Deployment.
func deletes(f Facts) Question {
	q := web(nil)
	q.User = User{Name: "alice"}
	q.Facts = f
	q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop", "labels": map[string]any{"env": "prod"}}}
	return q
}

func TestProtectedObjectsInACascadeRefuseIt(t *testing.T) {
	keep := map[string]any{"labels": map[string]any{"keep": "yes"}}
	confirmed := map[string]any{"labels": map[string]any{"keep": "yes"}, "annotations": map[string]any{v1beta1.ConfirmDeleteAnnotation: "uid-a"}}
	one := configMap("a", keep)
	for name, c := range map[string]struct {
		policies string
		objects  []map[string]any
		with     func(*Question)
		refuses  string // empty: nothing
		warns    string
	}{
		"one": {protects("p", "", "confirmation: Required}"), []map[string]any{one}, nil,
			`may not be deleted: protected objects would be deleted with it: 1 configmaps (a) (DeletionPolicy "p"). To keep them: kubectl delete deployments.apps web -n shop --cascade=orphan` + "\nTo delete them too, confirm and delete again: kubectl annotate configmaps a -n shop --overwrite weir.dev/confirm-delete=uid-a", ""},
		"two policies":                        {protects("p", "", "confirmation: Required}") + protects("o", "", "confirmation: Required}"), []map[string]any{one}, nil, `(DeletionPolicy "o")`, ""},
		"one that is confirmed":               {protects("p", "", "confirmation: Required}"), []map[string]any{configMap("a", confirmed)}, nil, "", ""},
		"one that goes already":               {protects("p", "", "confirmation: Required}"), []map[string]any{configMap("a", map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})}, nil, "", ""},
		"one that is gone":                    {protects("p", "", "confirmation: Required}"), nil, nil, "", ""},
		"one that is selected":                {protects("p", ", objectSelector: {matchLabels: {keep: 'yes'}}", "confirmation: Required}"), []map[string]any{one}, nil, "1 configmaps (a)", ""},
		"one that is not selected":            {protects("p", ", objectSelector: {matchLabels: {keep: 'yes'}}", "confirmation: Required}"), []map[string]any{configMap("a", nil)}, nil, "", ""},
		"one in a namespace that is selected": {protects("p", ", namespaceSelector: {matchLabels: {env: prod}}", "confirmation: Required}"), []map[string]any{one}, nil, "1 configmaps (a)", ""},
		"one in another namespace":            {protects("p", ", namespaceSelector: {matchLabels: {env: test}}", "confirmation: Required}"), []map[string]any{one}, nil, "", ""},
		"one that a condition is about":       {protects("p", ", matchConditions: [{name: c, expression: \"oldObject.metadata.name == 'a' && request.userInfo.username == 'alice' && request.resource.resource == 'configmaps'\"}]", "confirmation: Required}"), []map[string]any{one}, nil, "1 configmaps (a)", ""},
		"one that no condition is about":      {protects("p", ", matchConditions: [{name: c, expression: \"oldObject.metadata.name == 'b'\"}]", "confirmation: Required}"), []map[string]any{one}, nil, "", ""},
		"a condition that fails, Ignore":      {protects("p", ", matchConditions: [{name: c, expression: \"oldObject.data.x == 'b'\"}]", "confirmation: Required}"), []map[string]any{one}, nil, "", ""},
		"a condition that fails, Fail":        {protects("p", ", matchConditions: [{name: c, expression: \"oldObject.data.x == 'b'\"}]", "confirmation: Required}, failurePolicy: Fail"), []map[string]any{one}, nil, "", ""},
		"a limit alone":                       {protects("p", "", "maxDependents: 0, inCascades: Ignore}"), []map[string]any{configMap("owner", nil)}, nil, "", ""},
		"a limit, too":                        {protects("p", "", "maxDependents: 0}"), []map[string]any{configMap("owner", nil)}, nil, "1 configmaps (owner)", ""},
		"a limit, of one that goes already":   {protects("p", "", "maxDependents: 0}"), []map[string]any{configMap("owner", map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})}, nil, "", ""},
		"a limit that is kept":                {protects("p", "", "maxDependents: 2}"), []map[string]any{configMap("owner", nil)}, nil, "", ""},
		"ignored":                             {protects("p", "", "confirmation: Required, inCascades: Ignore}"), []map[string]any{one}, nil, "", ""},
		"on trial":                            {protects("p", "", "confirmation: Required}, validationActions: [Warn]"), []map[string]any{one}, nil, "", "1 configmaps (a)"},
		"many":                                {protects("p", "", "confirmation: Required}"), []map[string]any{configMap("d", nil), one, configMap("b", nil), configMap("c", nil)}, nil, "3 configmaps (a, b, d), and perhaps more", ""},
		"they are kept":                       {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.Options = map[string]any{"propagationPolicy": "Orphan"} }, "", ""},
		"their kind is kept":                  {protects("p", "", "confirmation: Required}") + delpol("w", "propagation: {default: Background, dependents: [{apiGroups: [''], resources: [configmaps], action: Orphan}]}"), []map[string]any{one}, nil, "", ""},
		"a collector":                         {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.User.Name = "system:serviceaccount:kube-system:generic-garbage-collector" }, "", ""},
		"the namespace goes":                  {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.NamespaceObject["metadata"].(map[string]any)["deletionTimestamp"] = "now" }, "", ""},
		"it goes already":                     {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.OldObject["metadata"].(map[string]any)["deletionTimestamp"] = "now" }, "", ""},
		"it goes already, and keeps them": {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) {
			q.OldObject["metadata"].(map[string]any)["deletionTimestamp"], q.OldObject["metadata"].(map[string]any)["finalizers"], q.Options = "now", []any{"orphan"}, map[string]any{"propagationPolicy": "Background"}
		}, "", ""},
		"not all is known, Ignore":                          {protects("p", "", "confirmation: Required}"), nil, func(q *Question) { q.Facts = catching(false) }, "", `Weir did not look at all dependents of deployments.apps "web" in namespace "shop": protected ones are kept, and released from their owners`},
		"not all is known, on trial":                        {protects("p", "", "confirmation: Required}, validationActions: [Warn]"), nil, func(q *Question) { q.Facts = catching(false) }, "", ""},
		"not all is known, but enough":                      {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.Facts = catching(false, "a") }, "1 configmaps (a)", ""},
		"nothing is known":                                  {protects("p", "", "confirmation: Required}, failurePolicy: Fail"), nil, func(q *Question) { q.Facts = Facts{} }, "", ""},
		"a cluster-scoped owner":                            {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.Namespace, q.NamespaceObject = "", nil }, "", ""},
		"a namespace of which not all is known, Ignore":     {protects("p", "", "confirmation: Required}"), nil, func(q *Question) { *q = namespace(catching(false)) }, "", ""},
		"a namespace of which not all is known, Fail":       {protects("p", "", "confirmation: Required}, failurePolicy: Fail"), nil, func(q *Question) { *q = namespace(catching(false)) }, "what would be deleted with it is not fully known yet", ""},
		"a namespace of which nothing is known, Fail":       {protects("p", "", "confirmation: Required}, failurePolicy: Fail"), nil, func(q *Question) { *q = namespace(Facts{}) }, "what would be deleted with it is not known yet", ""},
		"a namespace that holds none":                       {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { *q = namespace(q.Facts); q.Name = "empty" }, "", ""},
		"a namespace, by the collector":                     {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { *q = namespace(q.Facts); q.User.Name = GarbageCollector }, "1 configmaps (a)", ""},
		"a namespace that holds what Kubernetes puts there": {protects("p", "", "confirmation: Required}"), []map[string]any{configMap("kube-root-ca.crt", nil)}, func(q *Question) { *q = namespace(q.Facts) }, "", ""},
		"a namespace": {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) {
			*q = namespace(q.Facts)
			q.Options = map[string]any{"propagationPolicy": "Orphan"}
		}, `namespaces "shop" may not be deleted: protected objects would be deleted with it: 1 configmaps (a) (DeletionPolicy "p"). To delete them too, confirm and delete again: kubectl annotate`, ""},
		"a definition": {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) {
			*q = Question{Operation: Delete, Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Name: "x.example.com", Facts: q.Facts,
				OldObject: map[string]any{"metadata": map[string]any{"name": "x.example.com", "uid": "uid-x"}, "spec": map[string]any{"group": "", "names": map[string]any{"plural": "configmaps"}}}}
		}, "1 configmaps (shop/a)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", c.policies), Options{})
			for _, p := range set.Problems() {
				if !p.Warning && !strings.Contains(name, "fails") {
					t.Fatal(p)
				}
			}
			q := deletes(catching(true, "a", "b", "c", "d", "owner"))
			if c.with != nil {
				c.with(&q)
			}
			d := carriedOut(set.Cascade(q), c.objects...)
			if d.Allowed != (c.refuses == "") || !strings.Contains(d.Message, c.refuses) || !strings.Contains(strings.Join(d.Warnings, "\n"), c.warns) || len(d.Warnings) > 0 && c.warns == "" {
				t.Errorf("allowed=%t %s\nwarnings %q\nwant %q", d.Allowed, d.Message, d.Warnings, c.refuses+c.warns)
			}
		})
	}
}

// namespace is the DELETE of the Namespace shop.
func namespace(f Facts) Question {
	return Question{Operation: Delete, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		Namespace: "shop", Name: "shop", User: User{Name: "alice"}, Facts: f,
		OldObject: map[string]any{"metadata": map[string]any{"name": "shop", "uid": "uid-shop", "labels": map[string]any{"env": "prod"}}}}
}

// TestConditionsSeeTheKindOfWhatIsReadByItsMetadata: the API server says that each such object is a
// PartialObjectMetadata.
func TestConditionsSeeTheKindOfWhatIsReadByItsMetadata(t *testing.T) {
	for expression, refused := range map[string]bool{
		"oldObject.kind == 'ConfigMap' && oldObject.apiVersion == 'v1'": true,
		"oldObject.kind == 'PartialObjectMetadata'":                     false,
	} {
		set := Build(nil, sources(t, "f", protects("p", ", matchConditions: [{name: c, expression: \""+expression+"\"}]", "confirmation: Required}")), Options{})
		read := configMap("a", nil)
		read["apiVersion"], read["kind"] = "meta.k8s.io/v1", "PartialObjectMetadata"
		c := set.Cascade(deletes(catching(true, "a")))
		if c.Lookups()[0].Full {
			t.Errorf("%s: all of the object is to be read", expression)
		}
		if d := carriedOut(c, read); d.Allowed == refused {
			t.Errorf("%s: %+v", expression, d)
		}
		if read["kind"] != "PartialObjectMetadata" {
			t.Error("the object was written to")
		}
	}
}

// How much a namespace holds is up to users: where that is too much its delete is refused, whatever
// the failurePolicy. What cannot be read for another reason is the failurePolicy's. Neither refuses
// at another root, where each object is judged by itself.
func TestWhatCannotBeReadInACascade(t *testing.T) {
	for failure, unread := range map[string]bool{"Ignore": true, "Fail": false} {
		set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}, failurePolicy: "+failure)), Options{})
		for holds, q := range map[bool]Question{true: namespace(catching(true, "a")), false: deletes(catching(true, "a"))} {
			c := set.Cascade(q)
			c.Unread(&c.Lookups()[0], errors.New("etcd is away"))
			if d := c.Decide(nil); d.Allowed != (unread || !holds) || !strings.Contains(fmt.Sprint(d.Errors), "configmaps that would be deleted cannot be read: etcd is away") {
				t.Errorf("%s: unread: %+v", failure, d)
			}
			c = set.Cascade(q)
			c.TooMany(&c.Lookups()[0], 4000)
			d := c.Decide(nil)
			if said := strings.Join(append(d.Warnings, d.Message), ""); d.Allowed == holds || holds && !strings.Contains(said, `namespaces "shop" may not be deleted: it holds too many configmaps to check which of them are protected (4000 were checked)`) ||
				!holds && !strings.Contains(said, "did not look at all dependents of") {
				t.Errorf("%s: too many: %+v", failure, d)
			}
		}
	}
}

// A user can have a policy fail about one object of a namespace. That must not hide that the others
// were too many to be looked at.
func TestWhatFailsHidesNothingElseInACascade(t *testing.T) {
	set := Build(nil, sources(t, "f", protects("p", ", matchConditions: [{name: gold, expression: oldObject.data.tier == 'gold'}]", "confirmation: Required}, failurePolicy: Ignore")), Options{})
	c := set.Cascade(namespace(catching(true, "a", "b")))
	l := &c.Lookups()[0]
	if c.Saw(l, configMap("a", nil), map[string]any{"metadata": map[string]any{"name": "shop"}}) {
		t.Fatal("what cannot be judged is refused under Ignore")
	}
	c.TooMany(l, 400)
	c.TooMany(l, 400)
	d := c.Decide(nil)
	if d.Allowed || strings.Count(d.Message, "it holds too many configmaps to check") != 1 || !strings.Contains(fmt.Sprint(d.Errors), "no such key") {
		t.Errorf("%+v", d)
	}
}

// Of a Lookup only those objects count that go; in a namespace that goes everything does.
func TestLooksAskForWhatMayBeProtected(t *testing.T) {
	set := Build(nil, sources(t, "f", protects("p", ", objectSelector: {matchLabels: {keep: 'yes'}}", "confirmation: Required}")+
		protects("q", ", objectSelector: {matchExpressions: [{key: keep, operator: In, values: [always]}]}, matchConditions: [{name: c, expression: has(oldObject.data)}]", "confirmation: Required}")), Options{})
	lookups := set.Cascade(deletes(catching(true, "a", "b"))).Lookups()
	if len(lookups) != 1 || !lookups[0].Full || lookups[0].Namespace != "shop" || fmt.Sprint(lookups[0].Selector.MatchExpressions) != "[{keep In [always yes]}]" {
		t.Fatalf("%+v", lookups)
	}
	if !lookups[0].Goes("a", "uid-a") || lookups[0].Goes("x", "uid-x") {
		t.Error("what goes is not what was caught")
	}
	lookups = set.Cascade(namespace(catching(true, "a"))).Lookups()
	if l := lookups[0]; len(lookups) != 1 || l.Single() || l.Namespace != "shop" || !l.Goes("x", "uid-x") || l.Goes("kube-root-ca.crt", "uid-ca") {
		t.Errorf("%+v", lookups)
	}
}

// Only cluster-scoped objects own cluster-scoped objects, and these are not looked at.
func TestCascadesOfClusterScopedObjectsCostNothing(t *testing.T) {
	const cluster = "---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: whole}, spec: {match: {resources: [{apiGroups: [''], resources: [namespaces]}], namespaceSelector: {matchLabels: {env: prod}}}, protection: {confirmation: Required}}}\n"
	for text, want := range map[string]string{
		cluster: "",
		cluster + protects("p", ", namespaceSelector: {matchLabels: {env: prod}}", "confirmation: Required}"):                                                       "cascade.weir.dev [Cluster Namespaced] env in (prod)",
		strings.Replace(protects("p", ", namespaceSelector: {matchLabels: {env: prod}}", "confirmation: Required}"), "[configmaps]", "[configmaps, namespaces]", 1): "cascade.weir.dev [Cluster Namespaced] env in (prod)",
		protects("p", "", "maxDependents: 1, inCascades: Ignore}"):                                                                                                  "",
	} {
		var got []string
		for _, w := range Build(nil, sources(t, "f", text), Options{}).Webhooks(keptKinds, nil) {
			if w.Webhook != WebhookCascade {
				continue
			}
			selector := "<none>"
			if w.NamespaceSelector != nil {
				selector = fmt.Sprintf("%s in (%s)", w.NamespaceSelector.MatchExpressions[0].Key, strings.Join(w.NamespaceSelector.MatchExpressions[0].Values, ","))
			}
			var scopes []string
			for _, r := range w.Rules {
				scopes = append(scopes, string(*r.Scope))
			}
			slices.Sort(scopes)
			got = append(got, fmt.Sprintf("%s %s %s", w.Name, slices.Compact(scopes), selector))
			if w.FailurePolicy != admissionregistrationv1.Ignore || w.ObjectSelector != nil {
				t.Errorf("%+v", w)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s\n%s\nwant %s", text, strings.Join(got, ", "), want)
		}
	}
}

// TestNamesInACascadeStayInTheirLine: RBAC objects may be called what a terminal obeys, and what
// would write lines of its own into a refusal.
func TestNamesInACascadeStayInTheirLine(t *testing.T) {
	const name = "x\x1b[2J\n\nPlan: nothing is deleted."
	set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}")), Options{})
	f := catching(true, name)
	f.Catch = func(types.UID, func(schema.GroupResource) bool, func(schema.GroupResource) bool) Catch {
		return Catch{Objects: []Caught{{Resource: configMaps, Namespace: "shop", Name: name, UID: "u"}}, Complete: true}
	}
	for where, q := range map[string]Question{"in its namespace": deletes(f), "in another": deletes(f)} {
		if where == "in another" {
			q.Namespace = "elsewhere"
		}
		d := carriedOut(set.Cascade(q), configMap(name, map[string]any{"uid": "u"}))
		if d.Allowed || !strings.Contains(d.Message, `x\x1b[2J\n\nPlan: nothing is deleted.)`) || strings.Contains(d.Message, "\x1b") || strings.Count(d.Message, "\n") != 1 {
			t.Errorf("%s: allowed=%t %q", where, d.Allowed, d.Message)
		}
	}
}

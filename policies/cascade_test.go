package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// protects is a policy about ConfigMaps.
func protects(name, match, rest string) string {
	return fmt.Sprintf("---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: %s}, spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}]%s}, protection: {%s}}\n", name, match, rest)
}

// configMap is one in namespace shop.
func configMap(name string, more map[string]any) map[string]any {
	m := map[string]any{"name": name, "namespace": "shop", "uid": "uid-" + name}
	for k, v := range more {
		m[k] = v
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": m}
}

// catching are facts by which ConfigMaps go with whatever is deleted, and every kind of a name is served in version v1.
func catching(complete bool, names ...string) Facts {
	return Facts{
		Catch: func(s Search) Catch {
			c := Catch{Complete: complete}
			if s.UID == "" && s.Namespace == "" && s.Instances.Empty() || !s.Wanted(configMaps.GroupResource()) || s.Kept != nil && s.Kept(configMaps.GroupResource()) {
				return c
			}
			for _, n := range names {
				c.Objects = append(c.Objects, Caught{Resource: configMaps, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: n, UID: types.UID("uid-" + n)})
			}
			c.Count = len(names)
			return c
		},
		Dependents: func(uid types.UID, _ func(schema.GroupResource) bool) (AlsoDeleted, bool) {
			if uid == "uid-owner" {
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
	find := func(name string) map[string]any {
		for _, o := range objects {
			if object(o).name() == name {
				return o
			}
		}
		return nil
	}
	for o := range c.Owners() {
		c.Owner(o, find(o.Ref.Name), nil)
	}
	for _, l := range c.Lookups() {
		for _, o := range l.Objects {
			if found := find(o.Name); found != nil && c.Goes(&l, o.Namespace, o.UID) && c.Saw(&l, found, c.q.NamespaceObject) {
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
	confirmed := map[string]any{"labels": map[string]any{"keep": "yes"}, "annotations": map[string]any{v1alpha1.ConfirmDeleteAnnotation: "uid-a"}}
	one := configMap("a", keep)
	for name, c := range map[string]struct {
		policies string
		objects  []map[string]any
		with     func(*Question)
		refuses  string // empty: nothing
		warns    string
	}{
		"one": {protects("p", "", "confirmation: Required}"), []map[string]any{one}, nil,
			`may not be deleted: what is protected would be deleted with it: 1 configmaps (a) (DeletionPolicy "p"). To keep them: kubectl delete deployments.apps web -n shop --cascade=orphan. To delete them too: kubectl annotate configmaps a -n shop --overwrite weir.dev/confirm-delete=uid-a, and try again`, ""},
		"two policies":                        {protects("p", "", "confirmation: Required}") + protects("o", "", "confirmation: Required}"), []map[string]any{one}, nil, `(DeletionPolicy "o")`, ""},
		"one that is confirmed":               {protects("p", "", "confirmation: Required}"), []map[string]any{configMap("a", confirmed)}, nil, "", ""},
		"one that goes already":               {protects("p", "", "confirmation: Required}"), []map[string]any{configMap("a", map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})}, nil, "", ""},
		"one that is gone":                    {protects("p", "", "confirmation: Required}"), nil, nil, "", ""},
		"one that is selected":                {protects("p", ", objectSelector: {matchLabels: {keep: 'yes'}}", "confirmation: Required}"), []map[string]any{one}, nil, "1 configmaps (a)", ""},
		"one that is not selected":            {protects("p", ", objectSelector: {matchLabels: {keep: 'yes'}}", "confirmation: Required}"), []map[string]any{configMap("a", nil)}, nil, "", ""},
		"one in a namespace that is selected": {protects("p", ", namespaceSelector: {matchLabels: {env: prod}}", "confirmation: Required}"), []map[string]any{one}, nil, "1 configmaps (a)", ""},
		"one in another namespace":            {protects("p", ", namespaceSelector: {matchLabels: {env: test}}", "confirmation: Required}"), []map[string]any{one}, nil, "", ""},
		"one that a condition is about":       {protects("p", ", conditions: [{name: c, expression: \"oldObject.metadata.name == 'a' && request.userInfo.username == 'alice' && request.resource.resource == 'configmaps'\"}]", "confirmation: Required}"), []map[string]any{one}, nil, "1 configmaps (a)", ""},
		"one that no condition is about":      {protects("p", ", conditions: [{name: c, expression: \"oldObject.metadata.name == 'b'\"}]", "confirmation: Required}"), []map[string]any{one}, nil, "", ""},
		"a condition that fails, Ignore":      {protects("p", ", conditions: [{name: c, expression: \"oldObject.data.x == 'b'\"}]", "confirmation: Required}"), []map[string]any{one}, nil, "", ""},
		"a condition that fails, Fail":        {protects("p", ", conditions: [{name: c, expression: \"oldObject.data.x == 'b'\"}]", "confirmation: Required}, failurePolicy: Fail"), []map[string]any{one}, nil, `the delete of deployments.apps "web" in namespace "shop" cannot be judged, and the policy's failurePolicy is Fail: of what would be deleted, configmaps:`, ""},
		"a limit alone":                       {protects("p", "", "maxDependents: 0}"), []map[string]any{configMap("owner", nil)}, nil, "", ""},
		"a limit, too":                        {protects("p", "", "maxDependents: 0, inCascades: Refuse}"), []map[string]any{configMap("owner", nil)}, nil, "1 configmaps (owner)", ""},
		"a limit, of one that goes already":   {protects("p", "", "maxDependents: 0, inCascades: Refuse}"), []map[string]any{configMap("owner", map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})}, nil, "", ""},
		"a limit that is kept":                {protects("p", "", "maxDependents: 2, inCascades: Refuse}"), []map[string]any{configMap("owner", nil)}, nil, "", ""},
		"ignored":                             {protects("p", "", "confirmation: Required, inCascades: Ignore}"), []map[string]any{one}, nil, "", ""},
		"on trial":                            {protects("p", "", "confirmation: Required}, validationActions: [Warn]"), []map[string]any{one}, nil, "", "1 configmaps (a)"},
		"many":                                {protects("p", "", "confirmation: Required}"), []map[string]any{configMap("d", nil), one, configMap("b", nil), configMap("c", nil)}, nil, "3 configmaps (a, b, c), and perhaps more", ""},
		"they are kept":                       {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.Options = map[string]any{"propagationPolicy": "Orphan"} }, "", ""},
		"their kind is kept":                  {protects("p", "", "confirmation: Required}") + delpol("w", "propagation: {default: Background, dependents: [{apiGroups: [''], resources: [configmaps], action: Orphan}]}"), []map[string]any{one}, nil, "", ""},
		"a collector":                         {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.User.Name = "system:serviceaccount:kube-system:generic-garbage-collector" }, "", ""},
		"the namespace goes":                  {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.NamespaceObject["metadata"].(map[string]any)["deletionTimestamp"] = "now" }, "", ""},
		"it goes already":                     {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.OldObject["metadata"].(map[string]any)["deletionTimestamp"] = "now" }, "", ""},
		"it goes already, and keeps them": {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) {
			q.OldObject["metadata"].(map[string]any)["deletionTimestamp"], q.OldObject["metadata"].(map[string]any)["finalizers"], q.Options = "now", []any{"orphan"}, map[string]any{"propagationPolicy": "Background"}
		}, "1 configmaps (a)", ""},
		"not all is known, Ignore":              {protects("p", "", "confirmation: Required}"), nil, func(q *Question) { q.Facts = catching(false) }, "", ""},
		"not all is known, but enough":          {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) { q.Facts = catching(false, "a") }, "1 configmaps (a)", ""},
		"not all is known, Fail":                {protects("p", "", "confirmation: Required}, failurePolicy: Fail"), nil, func(q *Question) { q.Facts = catching(false) }, "what would be deleted with it is not all known yet", ""},
		"nothing is known, Fail":                {protects("p", "", "confirmation: Required}, failurePolicy: Fail"), nil, func(q *Question) { q.Facts = Facts{} }, "what would be deleted with it is not known yet", ""},
		"nothing is known, Fail, and elsewhere": {protects("p", ", namespaceSelector: {matchLabels: {env: test}}", "confirmation: Required}, failurePolicy: Fail"), nil, func(q *Question) { q.Facts = Facts{} }, "", ""},
		"a namespace": {protects("p", "", "confirmation: Required}"), []map[string]any{one}, func(q *Question) {
			*q = Question{Operation: Delete, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Namespace: "shop", Name: "shop", Facts: q.Facts, NamespaceObject: q.NamespaceObject,
				OldObject: map[string]any{"metadata": map[string]any{"name": "shop", "uid": "uid-shop"}}, Options: map[string]any{"propagationPolicy": "Orphan"}}
		}, `namespaces "shop" may not be deleted: what is protected would be deleted with it: 1 configmaps (a) (DeletionPolicy "p"). To delete them too: kubectl annotate`, ""},
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

// An edit of owner references deletes an object where no owner is there afterwards.
func TestEditsThatHaveTheCollectorDeleteAreJudgedAsDeletes(t *testing.T) {
	ref := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "name": name, "uid": "uid-" + name}
	}
	in := func(group string) map[string]any {
		r := ref("Thing", "x")
		r["apiVersion"] = group + "/v1"
		return r
	}
	flagged := ref("ConfigMap", "none")
	flagged["blockOwnerDeletion"], flagged["controller"] = true, true
	var tooMany []any
	for i := range mostOwners + 1 {
		tooMany = append(tooMany, ref("ConfigMap", fmt.Sprint("n", i)))
	}
	living, leaving := configMap("living", nil), configMap("leaving", map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})
	objects := []map[string]any{living, leaving, configMap("impostor", map[string]any{"uid": "another"})}
	owned := func(name string, owners ...any) {
		objects = append(objects, configMap(name, map[string]any{"ownerReferences": owners}))
	}
	owned("of-living", ref("ConfigMap", "living"))
	owned("of-event", ref("Event", "e"))
	owned("of-leaving", ref("ConfigMap", "leaving"))
	owned("of-none", ref("ConfigMap", "none"))
	owned("of-both", ref("ConfigMap", "living"), ref("ConfigMap", "leaving"))
	owned("of-of-event", ref("ConfigMap", "living"), ref("ConfigMap", "of-event"))
	owned("a", ref("ConfigMap", "b"))
	owned("b", ref("ConfigMap", "a"), ref("ConfigMap", "precious"))
	owned("precious")
	owned("of-many", tooMany...)
	for i := range mostOwners {
		owned(fmt.Sprint("link", i), ref("ConfigMap", fmt.Sprint("link", i+1)))
	}
	owned(fmt.Sprint("link", mostOwners))
	owned("node", ref("ConfigMap", "living"))
	for name, c := range map[string]struct {
		was, is []any
		refuses string
	}{
		"one that is not there":            {nil, []any{ref("ConfigMap", "none")}, `of configmaps "precious" in namespace "shop" the owner ConfigMap "none" (v1, uid uid-none) does not exist, so the garbage collector may delete it: configmaps "precious" in namespace "shop" may not be deleted without confirmation (DeletionPolicy "p"). Name an owner that is there. To delete it, confirm and delete again: kubectl annotate`},
		"one that is there":                {nil, []any{ref("ConfigMap", "living")}, ""},
		"one that is leaving":              {nil, []any{ref("ConfigMap", "leaving")}, "is being deleted"},
		"another with its name":            {nil, []any{ref("ConfigMap", "impostor")}, "does not exist"},
		"one beside one that is there":     {[]any{ref("ConfigMap", "living")}, []any{ref("ConfigMap", "living"), ref("ConfigMap", "none")}, "does not exist"},
		"a kind that is not served":        {nil, []any{in("example.com")}, "is of a kind that is not served"},
		"a kind of which nothing is known": {nil, []any{in("down.example.com")}, "is of a kind of which nothing is known yet"},
		"what nobody judges":               {nil, []any{ref("Event", "e")}, "is of a kind about whose deletes no policy is asked"},
		"a name that leads elsewhere":      {nil, []any{ref("ConfigMap", "../secrets/x")}, "does not exist"},
		"more than are looked up":          {nil, tooMany, "65 owners would have to be looked up, and at most 64 are"},
		"flags":                            {[]any{ref("ConfigMap", "none")}, []any{flagged}, ""},
		"one with an owner that is there":  {nil, []any{ref("ConfigMap", "of-living")}, ""},
		"one of what nobody judges":        {nil, []any{ref("ConfigMap", "of-event")}, `the owner Event "e" (v1, uid uid-e) of ConfigMap "of-event" is of a kind about whose deletes no policy is asked, so the garbage collector may delete it`},
		"one of one that is leaving":       {nil, []any{ref("ConfigMap", "of-leaving")}, `the owner ConfigMap "leaving" (v1, uid uid-leaving) of ConfigMap "of-leaving" is being deleted`},
		"one of one that is not there":     {nil, []any{ref("ConfigMap", "of-none")}, `of ConfigMap "of-none" does not exist`},
		"one of several":                   {nil, []any{ref("ConfigMap", "of-both")}, `of ConfigMap "of-both" is being deleted`},
		"at any depth":                     {nil, []any{ref("ConfigMap", "of-of-event")}, `the owner Event "e" (v1, uid uid-e) of ConfigMap "of-event"`},
		"owners that own each other":       {nil, []any{ref("ConfigMap", "a")}, ""},
		"more owners than are looked up":   {nil, []any{ref("ConfigMap", "of-many")}, `the owner ConfigMap "of-many" (v1, uid uid-of-many) has 65 owners, and at most 64 are looked up for one request`},
		"as many as are looked up":         {nil, []any{ref("ConfigMap", "link1")}, ""},
		"further than is looked":           {nil, []any{ref("ConfigMap", "link0")}, `of ConfigMap "link63" would have to be looked up, and at most 64 owners are for one request`},
		"one in a namespace above":         {nil, []any{ref("Node", "node")}, `of Node "node" is in a namespace, and it is not`},
		"one that stays has such an owner": {[]any{ref("ConfigMap", "living"), ref("ConfigMap", "of-event")}, []any{ref("ConfigMap", "of-event")}, "about whose deletes no policy is asked"},
		"one that stays has none":          {[]any{ref("ConfigMap", "living"), ref("ConfigMap", "of-event")}, []any{ref("ConfigMap", "living")}, ""},
		"one that was there is spoiled":    {[]any{ref("ConfigMap", "of-event")}, []any{ref("ConfigMap", "of-event"), ref("ConfigMap", "of-living")}, ""},
		"all are taken away":               {[]any{ref("ConfigMap", "living")}, []any{}, ""},
		"the last that is there":           {[]any{ref("ConfigMap", "living"), ref("ConfigMap", "none")}, []any{ref("ConfigMap", "none")}, "does not exist"},
		"one that is not there is taken":   {[]any{ref("ConfigMap", "living"), ref("ConfigMap", "none")}, []any{ref("ConfigMap", "living")}, ""},
		"nothing":                          {[]any{ref("ConfigMap", "none")}, []any{ref("ConfigMap", "none")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}")), Options{})
			q := deletes(catching(true))
			q.Operation, q.Resource, q.Kind, q.Name = Update, configMaps, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "precious"
			q.OldObject = configMap("precious", map[string]any{"ownerReferences": c.was})
			q.Object = configMap("precious", map[string]any{"ownerReferences": c.is})
			d := carriedOut(set.Cascade(q), objects...)
			if d.Allowed != (c.refuses == "") || !strings.Contains(d.Message, c.refuses) {
				t.Errorf("allowed=%t %s\nwant %q", d.Allowed, d.Message, c.refuses)
			}
			// Who has confirmed the delete may have the collector do it.
			q.OldObject = runtime.DeepCopyJSON(q.OldObject)
			q.OldObject["metadata"].(map[string]any)["annotations"] = map[string]any{v1alpha1.ConfirmDeleteAnnotation: "uid-precious"}
			if d := carriedOut(set.Cascade(q), objects...); !d.Allowed {
				t.Errorf("confirmed: %s", d.Message)
			}
			// What else goes with it counts, too.
			q.Facts = catching(true, "child")
			if d := carriedOut(set.Cascade(q), append(slices.Clone(objects), configMap("child", nil))...); d.Allowed != (c.refuses == "") || c.refuses != "" && !strings.Contains(d.Message, "and with it what is protected: 1 configmaps (child)") {
				t.Errorf("with a child: allowed=%t %s", d.Allowed, d.Message)
			}
		})
	}
}

// TestEditsThatDeleteWhatHoldsProtectedObjects: a Namespace and a definition that the collector deletes take what they hold with them, which does not
// depend on them.
func TestEditsThatDeleteWhatHoldsProtectedObjects(t *testing.T) {
	none := []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": "none", "uid": "uid-none"}}
	for name, c := range map[string]struct {
		resource schema.GroupVersionResource
		is       map[string]any
		refuses  string
	}{
		"shop":            {schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, nil, "and with it what is protected: 1 configmaps (a)"},
		"test":            {schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, nil, ""},
		"x.example.com":   {definitions.WithVersion("v1"), map[string]any{"group": "", "names": map[string]any{"plural": "configmaps"}}, "and with it what is protected: 1 configmaps (shop/a)"},
		"y.example.com":   {definitions.WithVersion("v1"), map[string]any{"group": "", "names": map[string]any{"plural": "others"}}, ""},
		"shop, of a node": {schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, nil, ""},
	} {
		f := catching(true, "a")
		all := f.Catch
		f.Catch = func(s Search) Catch {
			if s.Namespace != "shop" && s.Instances != configMaps.GroupResource() {
				return Catch{Complete: true}
			}
			return all(s)
		}
		q := Question{Operation: Update, Resource: c.resource, Name: name, User: User{Name: "alice"}, Facts: f,
			OldObject: map[string]any{"metadata": map[string]any{"name": name, "uid": "uid"}, "spec": c.is},
			Object:    map[string]any{"metadata": map[string]any{"name": name, "uid": "uid", "ownerReferences": none}, "spec": c.is}}
		if q.isNamespace() {
			q.Namespace = name
			q.NamespaceObject = q.OldObject
		}
		set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}")), Options{})
		if d := carriedOut(set.Cascade(q), configMap("a", nil)); d.Allowed != (c.refuses == "") || !strings.Contains(d.Message, c.refuses) {
			t.Errorf("%s: allowed=%t %s\nwant %q", name, d.Allowed, d.Message, c.refuses)
		}
	}
}

// TestConditionsSeeTheKindOfWhatIsReadByItsMetadata: the API server says that each such object is a PartialObjectMetadata.
func TestConditionsSeeTheKindOfWhatIsReadByItsMetadata(t *testing.T) {
	for expression, refused := range map[string]bool{
		"oldObject.kind == 'ConfigMap' && oldObject.apiVersion == 'v1'": true,
		"oldObject.kind == 'PartialObjectMetadata'":                     false,
	} {
		set := Build(nil, sources(t, "f", protects("p", ", conditions: [{name: c, expression: \""+expression+"\"}]", "confirmation: Required}")), Options{})
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

// How much there is to read is up to users: where that is too much, what they ask for is refused, whatever the failurePolicy.
// What cannot be read for another reason is the failurePolicy's.
func TestWhatCannotBeReadInACascade(t *testing.T) {
	for failure, unread := range map[string]bool{"Ignore": true, "Fail": false} {
		set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}, failurePolicy: "+failure)), Options{})
		c := set.Cascade(deletes(catching(true, "a")))
		c.Unread(&c.Lookups()[0], errors.New("etcd is away"))
		if d := c.Decide(nil); d.Allowed != unread || !strings.Contains(fmt.Sprint(d.Errors), "configmaps that would be deleted cannot be read: etcd is away") {
			t.Errorf("%s: unread: %+v", failure, d)
		}
		c = set.Cascade(deletes(catching(true, "a")))
		c.TooMany(&c.Lookups()[0], 4000)
		if d := c.Decide(nil); d.Allowed || !strings.Contains(d.Message, "would delete too many configmaps to find out which of them are protected: 4000 were read") {
			t.Errorf("%s: too many: %+v", failure, d)
		}
	}
}

// A user can have a policy fail about one object of a cascade. That must not hide that the others were too many to be looked at.
func TestWhatFailsHidesNothingElseInACascade(t *testing.T) {
	set := Build(nil, sources(t, "f", protects("p", ", conditions: [{name: gold, expression: oldObject.data.tier == 'gold'}]", "confirmation: Required}, failurePolicy: Ignore")), Options{})
	c := set.Cascade(deletes(catching(true, "a", "b")))
	l := &c.Lookups()[0]
	if c.Saw(l, configMap("a", nil), map[string]any{"metadata": map[string]any{"name": "shop"}}) {
		t.Fatal("what cannot be judged is refused under Ignore")
	}
	c.TooMany(l, 400)
	c.TooMany(l, 400)
	d := c.Decide(nil)
	if d.Allowed || strings.Count(d.Message, "would delete too many configmaps") != 1 || !strings.Contains(fmt.Sprint(d.Errors), "no such key") {
		t.Errorf("%+v", d)
	}
}

// Where the graph tells of a part only, what it did not tell of is looked for, too, and in doubt refused.
func TestWhatTheGraphDoesNotTellOfIsRefused(t *testing.T) {
	part := func(more ...Caught) Facts {
		f := catching(true)
		f.Catch = func(Search) Catch {
			return Catch{Objects: append([]Caught{{Resource: configMaps, Namespace: "shop", Name: "a", UID: "uid-a"}}, more...), Count: MostCaught + 1, Complete: true}
		}
		f.Depends = func(uid, on types.UID) bool { return uid == "uid-dependent" && on == "u1" }
		return f
	}
	set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}, failurePolicy: Ignore")), Options{})
	for uid, refused := range map[types.UID]bool{"uid-dependent": true, "uid-other": false} {
		c := set.Cascade(deletes(part()))
		l := c.Lookups()[0]
		if !l.More || l.Namespace != "shop" || !c.Goes(&l, "shop", "uid-a") || c.Goes(&l, "shop", uid) {
			t.Fatalf("%+v", l)
		}
		if d := c.Decide(nil); d.Allowed == refused || refused && !strings.Contains(d.Message, "would delete too many configmaps to find out which of them are protected: there are more than 10000 objects") {
			t.Errorf("%s: %+v", uid, d)
		}
	}
}

// TestWhatGoesWithANamespaceInACascadeMayBeAnywhere, and depends on nothing: where the graph tells of a part only, any other may be of that.
func TestWhatGoesWithANamespaceInACascadeMayBeAnywhere(t *testing.T) {
	set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}, failurePolicy: Ignore")), Options{})
	for along, refused := range map[bool]bool{true: true, false: false} {
		f := catching(true)
		f.Catch = func(Search) Catch {
			return Catch{Objects: []Caught{{Resource: configMaps, Namespace: "shop", Name: "a", UID: "uid-a"}}, Count: MostCaught + 1, Along: along, Complete: true}
		}
		f.Depends = func(_, _ types.UID) bool { return false }
		c := set.Cascade(Question{Operation: Delete, Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "tenants"}, Name: "t", User: User{Name: "alice"}, Facts: f,
			OldObject: map[string]any{"metadata": map[string]any{"name": "t", "uid": "uid-t"}}})
		l := c.Lookups()[0]
		if !l.More || l.Namespace != "" || c.Goes(&l, "elsewhere", "uid-other") {
			t.Fatalf("%+v", l)
		}
		if d := c.Decide(nil); d.Allowed == refused {
			t.Errorf("along %t: %+v", along, d)
		}
	}
}

// Of a Lookup only those objects count that go; where there are more than the graph told, everything in the namespace does.
func TestLooksAskForWhatMayBeProtected(t *testing.T) {
	set := Build(nil, sources(t, "f", protects("p", ", objectSelector: {matchLabels: {keep: 'yes'}}", "confirmation: Required}")+
		protects("q", ", objectSelector: {matchExpressions: [{key: keep, operator: In, values: [always]}]}, conditions: [{name: c, expression: has(oldObject.data)}]", "confirmation: Required}")), Options{})
	c := set.Cascade(deletes(catching(true, "a", "b")))
	lookups := c.Lookups()
	if len(lookups) != 1 || !lookups[0].Full || lookups[0].Namespace != "shop" || fmt.Sprint(lookups[0].Selector.MatchExpressions) != "[{keep In [always yes]}]" {
		t.Fatalf("%+v", lookups)
	}
	if !c.Goes(&lookups[0], "shop", "uid-a") || c.Goes(&lookups[0], "shop", "uid-x") {
		t.Error("what goes is not what was caught")
	}
	q := deletes(catching(true, "a"))
	q.Facts.Catch = func(Search) Catch {
		return Catch{Objects: []Caught{{Resource: configMaps, Namespace: "shop", Name: "a", UID: "uid-a"}}, Count: MostCaught + 1, Complete: true}
	}
	q.Resource, q.Name, q.Namespace = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "shop", "shop"
	q.OldObject = map[string]any{"metadata": map[string]any{"name": "shop", "uid": "uid-shop"}}
	c = set.Cascade(q)
	if l := c.Lookups()[0]; !l.More || l.Namespace != "shop" || !c.Goes(&l, "shop", "uid-x") || c.Goes(&l, "other", "uid-x") {
		t.Errorf("%+v", l)
	}
}

// Only cluster-scoped objects own cluster-scoped objects: what is in namespaces need not come then.
func TestCascadesOfClusterScopedObjectsCostNothingInNamespaces(t *testing.T) {
	const cluster = "---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: whole}, spec: {match: {resources: [{apiGroups: [''], resources: [namespaces]}], namespaceSelector: {matchLabels: {env: prod}}}, protection: {confirmation: Required}}}\n"
	for text, want := range map[string]string{
		cluster: "cluster.cascade.weir.dev Cluster <none>, cluster.references.cascade.weir.dev Cluster <none>",
		cluster + protects("p", ", namespaceSelector: {matchLabels: {env: prod}}", "confirmation: Required}"):                                                       "cascade.weir.dev * env in (prod), cluster.cascade.weir.dev Cluster <none>, cluster.references.cascade.weir.dev Cluster <none>, references.cascade.weir.dev * env in (prod)",
		strings.Replace(protects("p", ", namespaceSelector: {matchLabels: {env: prod}}", "confirmation: Required}"), "[configmaps]", "[configmaps, namespaces]", 1): "cascade.weir.dev * <none>, references.cascade.weir.dev * <none>",
		protects("p", "", "maxDependents: 1}"): "",
	} {
		var got []string
		for _, w := range Build(nil, sources(t, "f", text), Options{}).Webhooks(keptKinds) {
			if w.Webhook != WebhookCascade {
				continue
			}
			selector := "<none>"
			if w.NamespaceSelector != nil {
				selector = fmt.Sprintf("%s in (%s)", w.NamespaceSelector.MatchExpressions[0].Key, strings.Join(w.NamespaceSelector.MatchExpressions[0].Values, ","))
			}
			got = append(got, fmt.Sprintf("%s %s %s", w.Name, *w.Rules[0].Scope, selector))
			if w.FailurePolicy != admissionregistrationv1.Ignore || w.ObjectSelector != nil {
				t.Errorf("%+v", w)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s\n%s\nwant %s", text, strings.Join(got, ", "), want)
		}
	}
}

// Whoever changes owner references is asked about; whoever changes anything else, or creates, costs no call.
func TestOnlyEditsOfReferencesComeForCascades(t *testing.T) {
	set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}")), Options{})
	webhooks := set.Webhooks(keptKinds)
	edits := webhooks[slices.IndexFunc(webhooks, func(w WebhookRules) bool { return w.Name == "references.cascade.weir.dev" })]
	for name, c := range map[string]struct {
		was, is any
		comes   bool
	}{
		"none":    {nil, nil, false},
		"same":    {[]any{map[string]any{"uid": "a"}}, []any{map[string]any{"uid": "a"}}, false},
		"added":   {nil, []any{map[string]any{"uid": "a"}}, true},
		"changed": {[]any{map[string]any{"uid": "a"}}, []any{map[string]any{"uid": "b"}}, true},
		"all go":  {[]any{map[string]any{"uid": "a"}}, nil, false},
	} {
		meta := func(refs any) map[string]any {
			m := map[string]any{"name": "web", "namespace": "shop"}
			if refs != nil {
				m["ownerReferences"] = refs
			}
			return map[string]any{"metadata": m}
		}
		q := web(nil)
		q.Operation, q.OldObject, q.Object = Update, meta(c.was), meta(c.is)
		if got := comes(t, edits, &q); got != c.comes {
			t.Errorf("%s: comes: %t", name, got)
		}
	}
}

// TestNamesInACascadeStayInTheirLine: RBAC objects may be called what a terminal obeys, and what would write lines of its own into a refusal.
func TestNamesInACascadeStayInTheirLine(t *testing.T) {
	const name = "x\x1b[2J\n\nPlan: nothing is deleted."
	set := Build(nil, sources(t, "f", protects("p", "", "confirmation: Required}")), Options{})
	for where, q := range map[string]Question{"in its namespace": deletes(catching(true, name)), "in another": deletes(catching(true, name))} {
		if where == "in another" {
			q.Namespace = "elsewhere"
		}
		d := carriedOut(set.Cascade(q), configMap(name, map[string]any{"uid": "u"}))
		if d.Allowed || !strings.Contains(d.Message, `x\x1b[2J\n\nPlan: nothing is deleted.)`) || strings.ContainsAny(d.Message, "\x1b\n") {
			t.Errorf("%s: allowed=%t %q", where, d.Allowed, d.Message)
		}
	}
}

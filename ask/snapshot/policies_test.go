package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// governed is a cluster with policies, of whose namespace shop a World knows these ConfigMaps.
func governed(t *testing.T, names ...string) (*apitest.Server, *insight.World) {
	t.Helper()
	return governedIn(t, "shop", names...)
}

func governedIn(t *testing.T, namespace string, names ...string) (*apitest.Server, *insight.World) {
	t.Helper()
	server := apitest.New()
	server.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+", labels: {env: prod}}}")
	kind := func(group, resource, kind string) graph.Resource {
		return graph.Resource{Group: group, Resource: resource, Kind: kind, Version: "v1", Versions: []string{"v1"}, Namespaced: group == "", Collected: true}
	}
	weir := v1beta1.GroupVersion.Group
	w := insight.NewWorld(namespace, []graph.Resource{kind("", "configmaps", "ConfigMap"), kind(weir, "deletionpolicies", "DeletionPolicy"), kind(weir, "drainpolicies", "DrainPolicy")})
	var objects []metav1.PartialObjectMetadata
	for _, name := range names {
		objects = append(objects, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{"name": name}}})
		server.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {last: 'yes'}}", name, namespace))
	}
	w.List(schema.GroupResource{Resource: "configmaps"}, "1", objects)
	return server, w
}

// waits is a DeletionPolicy by which deletions of ConfigMaps wait for their dependents; more is
// YAML of its match.
func waits(more string) string {
	return "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: waits, uid: waits}, spec: {match: {resources: [{apiGroups: [''], resources: [configmaps]}]" + more + "}, propagation: {default: Foreground}}}"
}

// TestPoliciesThatCannotBeReadAreDoubted: that there are none is no doubt, nor that their kind is
// not installed.
func TestPoliciesThatCannotBeReadAreDoubted(t *testing.T) {
	const known = "not you (so what they refuse and change is not known) "
	for name, c := range map[string]struct {
		policy, path string
		code         int // of what ends with the path; 0: it is answered
		some         bool
		unread       []string
	}{
		"there are none":          {"", "/deletionpolicies", 0, false, nil},
		"there is one":            {waits(""), "/deletionpolicies", 0, true, nil},
		"they are not installed":  {waits(""), "/deletionpolicies", 404, false, nil},
		"they may not be read":    {waits(""), "/deletionpolicies", 403, false, []string{"deletionpolicies.weir.dev: " + known + "(forbidden: true)"}},
		"they cannot be read now": {waits(""), "/deletionpolicies", 500, false, []string{"deletionpolicies.weir.dev: " + known + "(forbidden: false)"}},
		"files may not be read":   {"", "/weir-file-policies", 403, false, []string{"policies that are files: " + known + "(forbidden: true)"}},
	} {
		t.Run(name, func(t *testing.T) {
			server, w := governed(t)
			if c.policy != "" {
				server.Put("deletionpolicies", c.policy)
			}
			server.Intercept(func(r apitest.Request) *apitest.Reply {
				if c.code != 0 && strings.HasSuffix(r.Path, c.path) {
					return apitest.Refuse(c.code, map[int]string{404: "NotFound", 403: "Forbidden", 500: "InternalError"}[c.code], "not you")
				}
				return nil
			})
			p, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
			if err != nil || (p != nil) != c.some {
				t.Errorf("%v, %v", p, err)
			}
			if diff := cmp.Diff(c.unread, unread(w)); diff != "" {
				t.Errorf("not read (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPoliciesInFilesAreJudged: an object of the same name takes precedence, and edits of owner
// references are no part of a plan.
func TestPoliciesInFilesAreJudged(t *testing.T) {
	const file = `{"kind": "DeletionPolicy", "name": "waits", "file": "a.yaml", "spec": {"match": {"resources": [{"apiGroups": [""], "resources": ["configmaps"]}]}, "propagation": {"default": "Foreground"}}}`
	for name, c := range map[string]struct {
		files, object string
		by            string
	}{
		"one in a file":                 {"[" + file + "]", "", "waits"},
		"another object of its name":    {"[" + file + "]", waits(", namespaceSelector: {matchLabels: {env: test}}"), ""},
		"one about edits of references": {`[{"kind": "OwnerReferencePolicy", "name": "edits", "file": "a.yaml", "spec": {}}]`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server, w := governed(t, "web")
			server.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: weir-file-policies, namespace: weir-system}, data: {policies: '%s'}}", c.files))
			if c.object != "" {
				server.Put("deletionpolicies", c.object)
			}
			p, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
			if err != nil || (p == nil) != (c.by == "" && c.object == "") {
				t.Fatalf("%v, %v", p, err)
			}
			if p == nil {
				return
			}
			v, _ := w.Graph.Find("web")
			v.Finalizers = []string{v1beta1.Finalizer}
			if got := p.Enforce(t.Context())(v); got.By != c.by || got.Doubt != "" || len(unread(w)) > 0 {
				t.Errorf("%+v, want %q; unread: %q", got, c.by, unread(w))
			}
		})
	}
}

// TestWhatADeletionRestsOnMayNotBeReadable: then it is doubted, and not said to be one or the
// other.
func TestWhatADeletionRestsOnMayNotBeReadable(t *testing.T) {
	const condition = `, matchConditions: [{name: last, expression: "oldObject.data.last == 'yes'"}]`
	for name, c := range map[string]struct {
		match, refused string // a path
		kind           string // of what goes
		whole          int    // objects that were read whole before
		want           insight.Enforcement
		reads          int // of the object
	}{
		"all is read":                       {"", "", "configmaps", 0, insight.Enforcement{By: "waits", Propagation: metav1.DeletePropagationForeground}, 0},
		"a kind without policies":           {"", "", "secrets", 0, insight.Enforcement{}, 0},
		"the namespace may not be":          {"", "/api/v1/namespaces/shop", "configmaps", 0, insight.Enforcement{Doubt: `the namespace "shop", by whose labels policies select, could not be read: not you`}, 0},
		"a condition looks at the object":   {condition, "", "configmaps", 0, insight.Enforcement{By: "waits", Propagation: metav1.DeletePropagationForeground}, 1},
		"which may not be read":             {condition, "/configmaps/a", "configmaps", 0, insight.Enforcement{Doubt: "policies look at more than its metadata, and it could not be read: not you"}, 1},
		"which is the last that is read":    {condition, "", "configmaps", mostFull - 1, insight.Enforcement{By: "waits", Propagation: metav1.DeletePropagationForeground}, 1},
		"of which too many were read":       {condition, "", "configmaps", mostFull, insight.Enforcement{Doubt: "policies look at more than its metadata, and it was not read: there are too many"}, 0},
		"a condition that does not hold":    {`, matchConditions: [{name: last, expression: "oldObject.data.last == 'no'"}]`, "", "configmaps", 0, insight.Enforcement{Propagation: metav1.DeletePropagationBackground}, 1},
		"a namespace that is not selected":  {`, namespaceSelector: {matchLabels: {env: test}}`, "", "configmaps", 0, insight.Enforcement{Propagation: metav1.DeletePropagationBackground}, 0},
		"an object that is not in the list": {"", "", "gone", 0, insight.Enforcement{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server, w := governed(t, "a")
			server.Put("deletionpolicies", waits(c.match))
			p, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			reads := 0
			server.Intercept(func(r apitest.Request) *apitest.Reply {
				if strings.HasSuffix(r.Path, "/configmaps/a") {
					reads++
				}
				if c.refused != "" && strings.HasSuffix(r.Path, c.refused) {
					return apitest.Refuse(403, "Forbidden", "not you")
				}
				return nil
			})
			v, _ := w.Graph.Find("a")
			v.Finalizers = []string{v1beta1.Finalizer}
			switch c.kind {
			case "secrets":
				v.Kind.Resource = c.kind
			case "gone":
				v.UID = "gone"
			}
			p.whole = c.whole
			got := p.Enforce(t.Context())(v)
			if diff := cmp.Diff(c.want, got); diff != "" || reads != c.reads {
				t.Errorf("%d reads of the object, want %d (-want +got):\n%s", reads, c.reads, diff)
			}
		})
	}
}

// TestWavesAreThoseOfThePolicy: of a namespace that none selects, or that may not be read, there
// are none.
func TestWavesAreThoseOfThePolicy(t *testing.T) {
	server, w := governed(t, "first", "second", "third")
	server.Put("drainpolicies", `{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: order, uid: order}, spec: {namespaceSelector: {matchLabels: {env: prod}}, waves: [
		{name: one, resources: [{apiGroups: [''], resources: [configmaps]}], objectSelector: {matchLabels: {name: first}}}, {name: two, resources: [{apiGroups: [''], resources: [configmaps]}], objectSelector: {matchLabels: {name: second}}},
		{name: rest, resources: [{apiGroups: [''], resources: [secrets]}]}]}}`)
	server.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
	server.Intercept(func(r apitest.Request) *apitest.Reply {
		if strings.HasSuffix(r.Path, "/namespaces/secret") {
			return apitest.Refuse(403, "Forbidden", "not you")
		}
		return nil
	})
	p, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	waves := p.Waves(t.Context())
	for _, namespace := range []string{"other", "secret"} {
		if waves(namespace) != nil {
			t.Errorf("%s has waves", namespace)
		}
	}
	wave := waves("shop")
	for name, want := range map[types.UID]int{"first": 0, "second": 1, "third": 2} {
		if v, _ := w.Graph.Find(name); wave(v) != want {
			t.Errorf("%s goes with wave %d, want %d", name, wave(v), want)
		}
	}
}

// TestOtherCollectorsAreAssumed: unless a canary says that Weir collects; it is asked once.
func TestOtherCollectorsAreAssumed(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want bool // others collect
	}{"there is no canary": {0, true}, "it may not be read": {403, true}} {
		server, w := governed(t)
		server.Put("deletionpolicies", waits(""))
		p, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		server.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/api/v1/configmaps" {
				if asked++; !strings.Contains(r.Query, "fieldSelector=metadata.name%3D"+v1beta1.CollectorCanary) {
					t.Errorf("asked for %s", r.Query)
				}
				if c.code != 0 {
					return apitest.Refuse(c.code, "Forbidden", "not you")
				}
			}
			return nil
		})
		for range 2 {
			if got := p.collector(t.Context()) == policies.OthersCollect; got != c.want {
				t.Errorf("%s: others collect: %t", name, got)
			}
		}
		if asked != 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}

// TestPropagationDoesNotHoldInWeirsOwnNamespace: which is taken to be the usual one.
func TestPropagationDoesNotHoldInWeirsOwnNamespace(t *testing.T) {
	for namespace, holds := range map[string]bool{"shop": true, "weir-system": false} {
		server, w := governedIn(t, namespace, "a")
		server.Put("deletionpolicies", waits(""))
		p, err := (&Reader{Config: server.Config()}).Policies(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := w.Graph.Find("a")
		v.Finalizers = []string{v1beta1.Finalizer}
		if got := p.Enforce(t.Context())(v); (got.By == "waits") != holds || got.Doubt != "" || len(unread(w)) > 0 {
			t.Errorf("%s: %+v, want a policy: %t; unread: %q", namespace, got, holds, unread(w))
		}
	}
}

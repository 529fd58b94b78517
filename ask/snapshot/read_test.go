package snapshot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// served is discovery of kinds that a test changes.
type served struct {
	discovery.DiscoveryInterface
	mu    sync.Mutex
	kinds []metav1.APIResource
	err   error
}

func (s *served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, nil, s.err
	}
	v := metav1.GroupVersionForDiscovery{GroupVersion: "v1", Version: "v1"}
	return []*metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}},
		[]*metav1.APIResourceList{{GroupVersion: "v1", APIResources: s.kinds}}, nil
}

func (s *served) set(err error, kinds ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds, s.err = nil, err
	for _, k := range kinds {
		s.kinds = append(s.kinds, metav1.APIResource{Name: k + "s", Kind: k, Namespaced: k != "namespace", Verbs: metav1.Verbs{"list", "watch", "get", "delete", "patch"}})
	}
}

// reading is a Reader of an API server in memory.
type reading struct {
	*testing.T
	*Reader
	api    *apitest.Server
	served *served

	mu    sync.Mutex
	lists []string // that were asked for, each with its continue token
}

func newReading(t *testing.T) *reading {
	r := &reading{T: t, api: apitest.New(), served: &served{}}
	r.Reader = &Reader{Config: r.api.Config(), Discovery: r.served}
	r.served.set(nil, "namespace", "configmap", "secret")
	r.answer(func(apitest.Request) *apitest.Reply { return nil })
	return r
}

// answer has some requests be answered otherwise.
func (r *reading) answer(f func(apitest.Request) *apitest.Reply) {
	r.api.Intercept(func(q apitest.Request) *apitest.Reply {
		_, next, _ := strings.Cut(q.Query, "continue=")
		next, _, _ = strings.Cut(next, "&")
		r.mu.Lock()
		r.lists = append(r.lists, strings.TrimSpace(strings.TrimPrefix(q.Path, "/api/v1/")+" "+next))
		r.mu.Unlock()
		return f(q)
	})
}

// asked are the lists since the last time, sorted.
func (r *reading) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.lists
	r.lists = nil
	slices.Sort(out)
	return out
}

// put makes an object with owners, each written KIND/NAME; more is YAML of its metadata.
func (r *reading) put(kind, namespace, name, more string, owners ...string) {
	var refs []string
	for _, o := range owners {
		k, owner, _ := strings.Cut(o, "/")
		refs = append(refs, fmt.Sprintf("{apiVersion: v1, kind: %s, name: %q, uid: uid-%s}", k, owner, owner))
	}
	in := ""
	if namespace != "" {
		in = fmt.Sprintf(", namespace: %q", namespace)
	}
	r.api.Put(kind+"s", fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: %q%s, ownerReferences: [%s]%s}}", kind, name, in, strings.Join(refs, ", "), more))
}

func (r *reading) read(namespace string) *insight.World {
	r.Helper()
	w, err := r.Read(r.Context(), namespace)
	if err != nil {
		r.Fatal(err)
	}
	return w
}

// unread is what a World says that it has not read, in short.
func unread(w *insight.World) (out []string) {
	for _, u := range w.Unread() {
		out = append(out, fmt.Sprintf("%s: %s (forbidden: %t)", u.Kind, u.Reason, u.Forbidden))
	}
	return out
}

// page is an answer of a list.
func page(next string, names ...string) *apitest.Reply {
	var items []any
	for _, n := range names {
		items = append(items, map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"name": n, "namespace": "x", "uid": "uid-" + n}})
	}
	return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": "7", "continue": next}, "items": items}}
}

// TestReadListsWhatCanBeAnAnswer: of a namespace no kind that is in none, unless an object names an
// owner of it, or what is asked is about more.
func TestReadListsWhatCanBeAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		put       func(*reading)
		lists     []string
		plan      string // of the delete of boss
	}{
		"the cluster": {"", func(r *reading) { r.put("configmap", "x", "leaf", "", "configmap/boss") }, []string{"configmaps", "namespaces", "secrets"}, "Plan: 2 objects are deleted in 2 steps."},
		"a namespace": {"x", func(r *reading) {
			r.put("configmap", "x", "leaf", "", "configmap/boss")
			r.put("configmap", "y", "other", "")
		}, []string{"namespaces/x/configmaps", "namespaces/x/secrets"}, "Plan: 2 objects are deleted in 2 steps."},
		"a namespace in which an owner is in none": {"x", func(r *reading) { r.put("configmap", "x", "leaf", "", "configmap/boss", "namespace/y") },
			[]string{"namespaces", "namespaces/x/configmaps", "namespaces/x/secrets"}, "Plan: 1 object is deleted, 1 is kept and loses a reference."},
		"a namespace whose owner in none waits for its dependents": {"x", func(r *reading) {
			r.put("namespace", "", "z", ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [foregroundDeletion]")
			r.put("configmap", "x", "leaf", "", "namespace/z")
		}, []string{"namespaces", "namespaces/x/configmaps", "namespaces/x/secrets"}, "Plan: 1 object is deleted. Incomplete: not all that the plan needs could be read."},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReading(t)
			r.put("namespace", "", "x", "")
			r.put("namespace", "", "y", "")
			r.put("configmap", "x", "boss", "")
			c.put(r)
			w := r.read(c.namespace)
			if diff := cmp.Diff(c.lists, r.asked()); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
			if got := w.Plan(insight.Deletion{Roots: []types.UID{"uid-boss"}, Propagation: metav1.DeletePropagationBackground}).Summary(); got != c.plan {
				t.Errorf("%s, want %s", got, c.plan)
			}
			if w.Meta("uid-other") != nil {
				t.Error("it knows an object of another namespace")
			}
		})
	}
}

// TestLongListsAreReadPageByPage: one whose next page has expired is begun again, a few times; what
// does not come whole has not been read.
func TestLongListsAreReadPageByPage(t *testing.T) {
	expired := apitest.Refuse(http.StatusGone, "Expired", "the continue token is too old")
	for name, c := range map[string]struct {
		pages  func(n int, next string) *apitest.Reply // of the nth request
		asked  int
		known  int
		unread []string
	}{
		"three pages": {func(_ int, next string) *apitest.Reply {
			return map[string]*apitest.Reply{"": page("2", "a", "b"), "2": page("3", "c"), "3": page("", "d")}[next]
		}, 3, 4, nil},
		"an empty first page": {func(_ int, next string) *apitest.Reply {
			return map[string]*apitest.Reply{"": page("2"), "2": page("", "a")}[next]
		}, 2, 1, nil},
		"the second expires once": {func(n int, next string) *apitest.Reply {
			if n == 2 {
				return expired
			}
			return map[string]*apitest.Reply{"": page("2", "a"), "2": page("", "b")}[next]
		}, 4, 2, nil},
		"it always expires": {func(_ int, next string) *apitest.Reply {
			if next != "" {
				return expired
			}
			return page("2", "a")
		}, 6, 0, []string{"configmaps: the continue token is too old (forbidden: false)"}},
		"the second is refused": {func(_ int, next string) *apitest.Reply {
			if next != "" {
				return apitest.Refuse(403, "Forbidden", "no more\nfor you")
			}
			return page("2", "a")
		}, 2, 0, []string{"configmaps: no more for you (forbidden: true)"}},
		"the API server breaks": {func(int, string) *apitest.Reply { return apitest.Refuse(500, "InternalError", "etcd") }, 1, 0, []string{"configmaps: etcd (forbidden: false)"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReading(t)
			n := 0
			r.answer(func(q apitest.Request) *apitest.Reply {
				if !strings.HasSuffix(q.Path, "/configmaps") {
					return nil
				}
				if !strings.Contains(q.Query, fmt.Sprintf("limit=%d", pageSize)) {
					t.Errorf("asked for %s", q.Query)
				}
				n++
				_, next, _ := strings.Cut(q.Query, "continue=")
				next, _, _ = strings.Cut(next, "&")
				return c.pages(n, next)
			})
			w := r.read("")
			if n != c.asked || len(script.UIDs(w.Graph)) != c.known {
				t.Errorf("%d requests, %d objects; want %d, %d", n, len(script.UIDs(w.Graph)), c.asked, c.known)
			}
			if diff := cmp.Diff(c.unread, unread(w)); diff != "" {
				t.Errorf("not read (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNothingIsKnownWithoutKinds: and groups that do not tell theirs are told; whoever gives up has
// no World.
func TestNothingIsKnownWithoutKinds(t *testing.T) {
	r := newReading(t)
	r.served.set(errors.New("connection refused"))
	if w, err := r.Read(t.Context(), ""); w != nil || err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v, %v", w, err)
	}
	r.served.set(nil, "namespace", "configmap")
	ended, cancel := context.WithCancel(t.Context())
	r.answer(func(apitest.Request) *apitest.Reply { cancel(); return nil })
	if _, err := r.Read(ended, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up: %v", err)
	}
	broken := &Reader{Config: r.api.Config(), Discovery: r.served}
	broken.Config.Host = "://"
	for what, f := range map[string]func() error{
		"read":     func() error { _, err := broken.Read(t.Context(), ""); return err },
		"policies": func() error { _, err := broken.Policies(t.Context(), insight.NewWorld("", nil)); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "make a ") {
			t.Errorf("%s without a client: %v", what, err)
		}
	}
}

// TestReasonsAreToldInOneLine: whoever answered may have written anything.
func TestReasonsAreToldInOneLine(t *testing.T) {
	for want, err := range map[string]error{
		"no answer":        nil,
		"no route to host": errors.New("no route\n  to host"),
		"two lines":        apierrors.NewBadRequest("two\r\nlines"),
		`red \x1b[31mtext`: apierrors.NewBadRequest("red \x1b[31mtext"),
		"wrapped:":         fmt.Errorf("wrapped: %w", &apierrors.StatusError{}),
	} {
		if got := ReasonOf(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := ReasonOf(fmt.Errorf("list: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no")))); got != `pods "a" is forbidden: no` {
		t.Errorf("of what the API server says: %q", got)
	}
}

// grouped is discovery of ConfigMaps, of Gadgets that another API server has, and of APIServices.
type grouped struct{ discovery.DiscoveryInterface }

func (grouped) ServerGroupsAndResources() (groups []*metav1.APIGroup, lists []*metav1.APIResourceList, err error) {
	kinds := map[string][]metav1.APIResource{
		"v1":                        {{Name: "namespaces", Kind: "Namespace"}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true}},
		"gadgets.io/v1":             {{Name: "gadgets", Kind: "Gadget", Namespaced: true}},
		"apiregistration.k8s.io/v1": {{Name: "apiservices", Kind: "APIService"}},
	}
	for gv, all := range kinds {
		for i := range all {
			all[i].Verbs = metav1.Verbs{"list", "watch", "get", "delete", "patch"}
		}
		parsed, _ := schema.ParseGroupVersion(gv)
		is := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: "v1"}
		groups = append(groups, &metav1.APIGroup{Name: parsed.Group, Versions: []metav1.GroupVersionForDiscovery{is}, PreferredVersion: is})
		lists = append(lists, &metav1.APIResourceList{GroupVersion: gv, APIResources: all})
	}
	return groups, lists, nil
}

// TestOwnersOfAnotherAPIServerAreNotKnownToBeGone: their versions cannot be compared with those of
// dependents, whether APIServices may be listed or not.
func TestOwnersOfAnotherAPIServerAreNotKnownToBeGone(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		code      int // of the list of APIServices
	}{
		"the cluster":                   {"", 200},
		"a namespace":                   {"x", 200},
		"APIServices may not be listed": {"x", 403},
		"APIServices cannot be listed":  {"", 500},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReading(t)
			r.Discovery = grouped{}
			r.answer(func(q apitest.Request) *apitest.Reply {
				list := page("")
				metadata := list.Body.(map[string]any)["metadata"].(map[string]any)
				switch {
				case strings.HasSuffix(q.Path, "/apiservices"):
					if c.code != 200 {
						return apitest.Refuse(c.code, "Refused", "no")
					}
					list.Body.(map[string]any)["items"] = []any{map[string]any{"metadata": map[string]any{"name": "v1.gadgets.io", "uid": "uid-service", "resourceVersion": "90"}}}
				case strings.HasSuffix(q.Path, "/gadgets"):
					metadata["resourceVersion"] = "5"
				case strings.HasSuffix(q.Path, "/configmaps"):
					metadata["resourceVersion"] = "100"
					list.Body.(map[string]any)["items"] = []any{map[string]any{"metadata": map[string]any{"name": "a", "namespace": "x", "uid": "uid-a", "resourceVersion": "99",
						"ownerReferences": []any{map[string]any{"apiVersion": "gadgets.io/v1", "kind": "Gadget", "name": "g", "uid": "uid-g"}}}}}
				}
				return list
			})
			if orphans := r.read(c.namespace).Orphans(); len(orphans) != 1 || orphans[0].Fate != "keep" {
				t.Errorf("%+v, want one that is kept", orphans)
			}
		})
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// gadgets is an API server of one kind, gadgets, that a test can break: enough of
// one to be discovered, listed, watched and deleted from.
type gadgets struct {
	w      *fixture
	verbs  []string
	port   int
	server *httptest.Server

	mu       sync.Mutex
	objects  []metav1.PartialObjectMetadata
	watchers map[chan metav1.PartialObjectMetadata]bool // told of deletions
}

const gadgetsPath = "/apis/" + aggregated + "/v1/"

// newGadgets registers an API server, and returns when it can be asked.
func (w *fixture) newGadgets(verbs ...string) *gadgets {
	w.Helper()
	g := &gadgets{w: w, verbs: verbs, watchers: map[chan metav1.PartialObjectMetadata]bool{}}
	g.start()
	w.Cleanup(func() { g.stop() })
	w.aggregate(g.port)
	w.kinds["gadget"] = kind{GroupVersionKind: schema.GroupVersionKind{Group: aggregated, Version: "v1", Kind: "Gadget"}, resource: "gadgets"}
	return g
}

// start serves, after stop on the same port as before.
func (g *gadgets) start() {
	g.w.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", g.port))
	if err != nil {
		g.w.Fatal(err)
	}
	g.port = listener.Addr().(*net.TCPAddr).Port
	g.server = httptest.NewUnstartedServer(g)
	g.server.Listener.Close()
	g.server.Listener = listener
	g.server.StartTLS()
}

// stop refuses connections from here on.
func (g *gadgets) stop() {
	g.server.CloseClientConnections()
	g.server.Close()
}

// add makes a gadget in the fixture's namespace.
func (g *gadgets) add(w *fixture, name string, owners ...metav1.OwnerReference) {
	m := metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name, UID: uuid.NewUUID(), ResourceVersion: "1", OwnerReferences: owners,
		},
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.objects = append(g.objects, m)
	w.made[name] = object{kind: w.kinds["gadget"], namespace: w.namespace, name: name, uid: m.UID}
}

// has tells whether a gadget is there.
func (g *gadgets) has(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.objects, func(m metav1.PartialObjectMetadata) bool { return m.Name == name })
}

// ServeHTTP is the API.
func (g *gadgets) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	rest, ours := strings.CutPrefix(in.URL.Path, gadgetsPath)
	words := strings.Split(rest, "/")
	switch {
	case in.URL.Path == "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: aggregated + "/v1", Version: "v1"}
		answer(out, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{
			{Name: aggregated, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}})
	case in.URL.Path+"/" == gadgetsPath:
		answer(out, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: aggregated + "/v1",
			APIResources: []metav1.APIResource{{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", Namespaced: true, Verbs: g.verbs}}})
	case !ours:
		http.NotFound(out, in)
	case in.URL.Query().Get("sendInitialEvents") != "": // the client lists then
		http.Error(out, "not supported", http.StatusBadRequest)
	case in.URL.Query().Get("watch") != "":
		g.watch(out, in)
	case rest == "gadgets":
		g.list(out, "")
	case len(words) == 3 && in.Method == http.MethodGet:
		g.list(out, words[1])
	case len(words) == 4 && in.Method == http.MethodDelete:
		g.delete(out, words[1], words[3])
	default:
		http.Error(out, "not supported", http.StatusMethodNotAllowed)
	}
}

func answer(out http.ResponseWriter, body any) {
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(body) // the client went away: there is none to tell
}

func (g *gadgets) list(out http.ResponseWriter, namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"},
	}
	for _, m := range g.objects {
		if namespace == "" || m.Namespace == namespace {
			list.Items = append(list.Items, m)
		}
	}
	answer(out, list)
}

func (g *gadgets) delete(out http.ResponseWriter, namespace, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.objects, func(m metav1.PartialObjectMetadata) bool { return m.Namespace == namespace && m.Name == name })
	if i < 0 {
		http.Error(out, "not found", http.StatusNotFound)
		return
	}
	for watcher := range g.watchers {
		watcher <- g.objects[i]
	}
	g.objects = slices.Delete(g.objects, i, i+1)
	answer(out, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

func (g *gadgets) watch(out http.ResponseWriter, in *http.Request) {
	deleted := make(chan metav1.PartialObjectMetadata, 100)
	g.mu.Lock()
	g.watchers[deleted] = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.watchers, deleted)
		g.mu.Unlock()
	}()
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(out).Flush() // the next read of the context tells
		select {
		case m := <-deleted:
			_ = json.NewEncoder(out).Encode(map[string]any{"type": "DELETED", "object": m})
		case <-in.Context().Done():
			return
		}
	}
}

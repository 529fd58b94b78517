package insight

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// World is what was read of a cluster: all of it, or the objects of one namespace.
type World struct {
	Graph *graph.Graph
	// Namespace is the only one of which objects were read, besides the cluster-scoped kinds that they name as owners. Empty:
	// all were read.
	Namespace string

	kinds  map[schema.GroupResource]graph.Resource
	meta   map[types.UID]*metav1.PartialObjectMetadata
	names  map[object]types.UID
	unread map[schema.GroupResource]Unread
	read   map[schema.GroupResource]uint64 // the kinds that were listed, and at which resourceVersion; 0: it is not told
}

// Unread is a kind that could not be listed: whatever is said about the cluster may lack objects of it.
type Unread struct {
	Kind      string `json:"kind"`
	Reason    string `json:"reason"`
	Forbidden bool   `json:"forbidden,omitempty"`
}

// object names one without its uid.
type object struct {
	kind            schema.GroupResource
	namespace, name string
}

// NewWorld is one of which nothing was read but the kinds that it serves.
func NewWorld(namespace string, kinds []graph.Resource) *World {
	w := &World{
		Graph: graph.New(), Namespace: namespace, kinds: map[schema.GroupResource]graph.Resource{},
		meta: map[types.UID]*metav1.PartialObjectMetadata{}, names: map[object]types.UID{},
		unread: map[schema.GroupResource]Unread{}, read: map[schema.GroupResource]uint64{},
	}
	for _, k := range kinds {
		w.kinds[k.GroupResource()] = k
	}
	w.Graph.Apply(graph.Serving{Resources: kinds})
	return w
}

// List takes in all objects of a kind, as they were at a resourceVersion. It keeps them, and changes them: managedFields stay
// only where they can tell who put a finalizer there.
func (w *World) List(kind schema.GroupResource, resourceVersion string, objects []metav1.PartialObjectMetadata) {
	w.Graph.Apply(graph.ListBegins{Kind: kind})
	for i := range objects {
		m := &objects[i]
		if len(m.Finalizers) == 0 {
			m.ManagedFields = nil
		}
		w.meta[m.UID], w.names[object{kind, m.Namespace, m.Name}] = m, m.UID
		w.Graph.Apply(graph.Observed{Object: graph.ObjectOf(kind, m)})
	}
	w.Graph.Apply(graph.ListEnds{Kind: kind})
	w.read[kind] = number(resourceVersion)
}

// NotListed says that a kind could not be listed.
func (w *World) NotListed(kind schema.GroupResource, forbidden bool, reason string) {
	w.unread[kind] = Unread{Kind: kind.String(), Reason: reason, Forbidden: forbidden}
	w.Graph.Apply(graph.ListFailed{Kind: kind, Forbidden: forbidden, Reason: reason})
}

// Unheard says that an API group did not tell which kinds it serves.
func (w *World) Unheard(groupVersion, reason string) {
	w.unread[schema.GroupResource{Resource: "*", Group: groupVersion}] = Unread{Kind: "all of " + groupVersion, Reason: reason}
}

// Unread are the kinds that could not be listed, sorted.
func (w *World) Unread() []Unread {
	out := make([]Unread, 0, len(w.unread))
	for _, u := range w.unread {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Unread) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// Unreadable tells whether a kind could not be listed.
func (w *World) Unreadable(kind schema.GroupResource) bool {
	_, failed := w.unread[kind]
	return failed
}

// OwnerKinds are the cluster-scoped kinds that objects of the namespace name as owners, and that were not read yet, sorted.
func (w *World) OwnerKinds() (out []graph.Resource) {
	met := map[schema.GroupResource]bool{}
	for v := range w.objects() {
		for _, o := range v.Owners {
			if o.Verdict != "unknown" {
				continue
			}
			served := w.Graph.ServedKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
			for _, gr := range served.Resources {
				_, failed := w.unread[gr]
				_, read := w.read[gr]
				if k := w.kinds[gr]; !k.Namespaced && k.Collected && !met[gr] && !read && !failed {
					met[gr] = true
					out = append(out, k)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b graph.Resource) int {
		return cmp.Compare(a.GroupResource().String(), b.GroupResource().String())
	})
	return out
}

// Widens tells whether what happens in the namespace may go on outside it: a cluster-scoped owner that is being deleted may
// wait for an object of the namespace, and go with it, and so on.
func (w *World) Widens() bool {
	if w.Namespace == "" {
		return false
	}
	for v := range w.objects() {
		if v.Namespace == "" && (v.Foreground || v.Orphaning) {
			return true
		}
	}
	return false
}

// objects are all that were read. Meanwhile the graph may learn of owners, and of nothing else.
func (w *World) objects() iter.Seq[*graph.View] {
	return func(yield func(*graph.View) bool) {
		for from := uint32(0); ; {
			var views []graph.View
			views, from = w.Graph.Views(from, 4096)
			for i := range views {
				if !yield(&views[i]) {
					return
				}
			}
			if from == 0 {
				return
			}
		}
	}
}

// Serves tells whether the cluster serves a kind.
func (w *World) Serves(kind schema.GroupResource) bool {
	_, ok := w.kinds[kind]
	return ok
}

// Find is the object of a kind that has a name.
func (w *World) Find(kind schema.GroupResource, namespace, name string) (types.UID, bool) {
	uid, ok := w.names[object{kind, namespace, name}]
	return uid, ok
}

// Meta is the metadata of an object as it was read; nil if it was not.
func (w *World) Meta(uid types.UID) *metav1.PartialObjectMetadata { return w.meta[uid] }

// answer is what a live read would say about an owner of an object: lists that were complete prove that there is none. But where
// the object was written after the owner's kind was listed, the owner may have come after that, too.
func (w *World) answer(c graph.Claim, of types.UID) graph.Looked {
	out := graph.Looked{Claim: c, Answer: graph.Unanswered, Reason: "objects of this kind were not read"}
	covered := w.Namespace == "" || !c.Namespaced || c.Namespace == w.Namespace
	at, read := w.read[c.Resource]
	dependent := w.meta[of]
	switch u, failed := w.unread[c.Resource]; {
	case failed && u.Forbidden:
		out.Answer, out.Reason = graph.Denied, u.Reason
	case failed:
		out.Reason = u.Reason
	case covered && read && at > 0 && dependent != nil && number(dependent.ResourceVersion) > at:
		out.Reason = "the cluster changed while it was listed: ask again"
	case covered && read:
		out.Answer, out.Reason = graph.Absent, ""
	}
	return out
}

// number is a resourceVersion as a number; 0 if it is none.
func number(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// settle looks up all owners of an object of which nothing is known.
func (w *World) settle(uid types.UID) {
	for a := w.Graph.Decide(uid); a.Verb == graph.Look; a = w.Graph.Decide(uid) {
		w.Graph.Apply(graph.Looking{Claim: a.Claim})
		w.Graph.Apply(w.answer(a.Claim, uid))
	}
}

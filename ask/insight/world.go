package insight

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// World is what was read of a cluster: all of it, or the objects of one namespace.
type World struct {
	Graph *graph.Graph
	// Namespace is the only one of which objects were read, besides the cluster-scoped kinds that
	// they name as owners. Empty: all were read.
	Namespace string
	// Asked is the namespace that surveys tell of, where more was read: see Widens. Empty: they
	// tell of all.
	Asked string

	kinds  map[schema.GroupResource]graph.Resource
	meta   []*metav1.PartialObjectMetadata // by the handles of the objects
	room   []graph.Handle                  // for what the graph tells
	unread map[schema.GroupResource]Unread
	read   map[schema.GroupResource]listing // the kinds that were listed
	round  int                              // of lists: see NextRound
	missed []Unread                         // what else could not be read
	doubts []doubt

	aggregated map[string]bool // API groups that another API server serves

	elsewhere map[types.UID]string // owners that are in another namespace than the one that was read: where

	refused map[types.UID]refusal // objects about which Weir's controller is refused
}

// Unread is a kind that could not be listed: whatever is said about the cluster may lack objects of
// it. Or it is something else that an answer rests on: Kind says what, in words, then.
type Unread struct {
	Kind      string `json:"kind"`
	Reason    string `json:"reason"`
	Forbidden bool   `json:"forbidden,omitempty"`
	// Besides says that it is no kind of which objects may be missing, but something that is read
	// of some objects only.
	Besides bool `json:"besides,omitempty"`
}

// NewWorld is one of which nothing was read but the kinds that it serves.
func NewWorld(namespace string, kinds []graph.Resource) *World {
	w := &World{
		Graph: graph.New(), Namespace: namespace, kinds: map[schema.GroupResource]graph.Resource{},
		unread: map[schema.GroupResource]Unread{}, read: map[schema.GroupResource]listing{},
	}
	for _, k := range kinds {
		w.kinds[k.GroupResource()] = k
	}
	w.Graph.Apply(graph.Serving{Resources: kinds})
	return w
}

// Clone is a World of its own that knows what w knows. What is done with the one is not seen in the
// other.
func (w *World) Clone() *World {
	return &World{
		Graph: w.Graph.Clone(), Namespace: w.Namespace, Asked: w.Asked, kinds: maps.Clone(w.kinds), meta: slices.Clone(w.meta),
		unread: maps.Clone(w.unread), read: maps.Clone(w.read), round: w.round, aggregated: maps.Clone(w.aggregated), missed: slices.Clone(w.missed), doubts: slices.Clone(w.doubts), elsewhere: maps.Clone(w.elsewhere),
		refused: maps.Clone(w.refused),
	}
}

// List takes in all objects of a kind, as they were at a resourceVersion. It keeps them, and
// changes them: managedFields stay only where they can tell who put a finalizer there.
func (w *World) List(kind schema.GroupResource, resourceVersion string, objects []metav1.PartialObjectMetadata) {
	w.ListOf(kind, resourceVersion, Pointers(objects))
}

// Pointers are those to objects of a list.
func Pointers(objects []metav1.PartialObjectMetadata) iter.Seq[*metav1.PartialObjectMetadata] {
	return func(yield func(*metav1.PartialObjectMetadata) bool) {
		for i := range objects {
			if !yield(&objects[i]) {
				return
			}
		}
	}
}

// ListOf does as List.
func (w *World) ListOf(kind schema.GroupResource, resourceVersion string, objects iter.Seq[*metav1.PartialObjectMetadata]) {
	w.Graph.Apply(graph.ListBegins{Kind: kind})
	for m := range objects {
		w.Observe(kind, m)
	}
	w.Graph.Apply(graph.ListEnds{Kind: kind})
	w.Read(kind, resourceVersion)
}

// Observe takes in an object as it is now, and keeps it as List does. Where no list is under way,
// its kind has been listed, and is watched.
func (w *World) Observe(kind schema.GroupResource, m *metav1.PartialObjectMetadata) {
	if len(m.Finalizers) == 0 && m.ManagedFields != nil {
		m.ManagedFields = nil
	}
	if kind == apiServices {
		w.Served(m)
	}
	w.room = w.Graph.ApplyTo(w.room[:0], graph.Observed{Object: graph.ObjectOf(kind, m)})
	at := w.Graph.Handle(m.UID)
	if n := int(w.Graph.MostHandle()) + 1; n > len(w.meta) {
		w.meta = slices.Grow(w.meta, n-len(w.meta))[:n]
	}
	w.meta[at] = m
}

// Unlist takes an object out that a list would not show any more. It is looked for like any other
// that was never there: so the World answers as one does that is made of lists.
func (w *World) Unlist(kind schema.GroupResource, uid types.UID) {
	at := w.Graph.Handle(uid)
	w.room = w.Graph.ApplyTo(w.room[:0], graph.Unlisted{Kind: kind, UID: uid})
	if int(at) < len(w.meta) && !w.Graph.Has(at) {
		w.meta[at] = nil // another uid may come there
	}
}

// Read says at which resourceVersion it is known which objects of a kind there are.
func (w *World) Read(kind schema.GroupResource, resourceVersion string) {
	w.read[kind] = listing{resourceVersion, w.round}
}

// HasRead tells whether it is known which objects of a kind there are.
func (w *World) HasRead(kind schema.GroupResource) bool {
	_, read := w.read[kind]
	return read
}

// NotListed says that a kind could not be listed.
func (w *World) NotListed(kind schema.GroupResource, forbidden bool, reason string) {
	w.unread[kind] = Unread{Kind: kind.String(), Reason: reason, Forbidden: forbidden}
	w.Graph.Apply(graph.ListFailed{Kind: kind, Forbidden: forbidden, Reason: reason})
}

// Unheard says that an API group did not tell which kinds it serves.
func (w *World) Unheard(groupVersion, reason string) {
	w.unread[schema.GroupResource{Resource: "*", Group: groupVersion}] = Unread{Kind: allOf + groupVersion, Reason: reason}
}

// allOf stands before the API group of which no kind is known.
const allOf = "all of "

// Missed says that something besides the list of a kind could not be read. What is missed twice is
// told once.
func (w *World) Missed(what string, forbidden bool, reason string) {
	if !slices.ContainsFunc(w.missed, func(u Unread) bool { return u.Kind == what }) {
		w.missed = append(w.missed, Unread{Kind: what, Reason: reason, Forbidden: forbidden, Besides: true})
	}
}

// Unread are the kinds that could not be listed, and what else could not be read, sorted.
func (w *World) Unread() []Unread {
	out := append(make([]Unread, 0, len(w.missed)+len(w.unread)), w.missed...)
	for _, u := range w.unread {
		out = append(out, u)
	}
	out = append(out, w.doubtful()...)
	slices.SortFunc(out, func(a, b Unread) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// Unreadable tells whether a kind could not be listed.
func (w *World) Unreadable(kind schema.GroupResource) bool {
	_, failed := w.unread[kind]
	return failed
}

// OwnerKinds are the cluster-scoped kinds that objects of the namespace name as owners, and that
// were not read yet, sorted.
func (w *World) OwnerKinds() []graph.Resource { return w.ownerKinds(w.objects()) }

// OwnerKindsOf are those that one object names.
func (w *World) OwnerKindsOf(uid types.UID) []graph.Resource {
	return w.ownerKinds(w.only(uid))
}

// only is one object, if it is there.
func (w *World) only(uid types.UID) iter.Seq[*graph.View] {
	return func(yield func(*graph.View) bool) {
		if v, ok := w.Graph.Find(uid); ok {
			yield(&v)
		}
	}
}

func (w *World) ownerKinds(of iter.Seq[*graph.View]) (out []graph.Resource) {
	met := map[schema.GroupResource]bool{}
	for v := range of {
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

// Widens tells whether what happens in the namespace may go on outside it: a cluster-scoped owner
// that is being deleted may wait for an object of the namespace, and go with it, and so on.
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

// surveyed are the objects that surveys tell of: all that were read, or those of the namespace that
// was asked about, and what is in none and owns one of them.
func (w *World) surveyed() iter.Seq[*graph.View] {
	if w.Asked == "" {
		return w.objects()
	}
	owners := map[types.UID]bool{}
	for v := range w.objects() {
		if v.Namespace == w.Asked {
			for _, o := range v.Owners {
				owners[o.UID] = true
			}
		}
	}
	return func(yield func(*graph.View) bool) {
		for v := range w.objects() {
			if (v.Namespace == w.Asked || v.Namespace == "" && owners[v.UID]) && !yield(v) {
				return
			}
		}
	}
}

// Lacks is a kind with namespaces that could not be listed, while other did have it; empty if there
// is none.
func (w *World) Lacks(other *World) (kind, reason string) {
	for _, u := range w.Unread() {
		gr := schema.ParseGroupResource(u.Kind)
		if k, ok := w.kinds[gr]; ok && k.Namespaced && !other.Unreadable(gr) {
			return u.Kind, u.Reason
		}
	}
	return "", ""
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

// Find is the object of a kind that has a name. It looks at all of the objects.
func (w *World) Find(kind schema.GroupResource, namespace, name string) (types.UID, bool) {
	for v := range w.objects() {
		if v.Kind == kind && v.Namespace == namespace && v.Name == name {
			return v.UID, true
		}
	}
	return "", false
}

// Meta is the metadata of an object as it was read; nil if it was not.
func (w *World) Meta(uid types.UID) *metav1.PartialObjectMetadata {
	return w.metaAt(w.Graph.Handle(uid))
}

// metaAt is that of an object by the handle that it has, or had before it went in a plan.
func (w *World) metaAt(at graph.Handle) *metav1.PartialObjectMetadata {
	if int(at) >= len(w.meta) {
		return nil
	}
	return w.meta[at]
}

// Listed are the metadata of the objects of a kind that a list has: those of a namespace, or of all
// if it is empty, by namespace and name, as the API server stores them. False: it is not known
// which there are.
func (w *World) Listed(kind schema.GroupResource, namespace string) (objects []*metav1.PartialObjectMetadata, known bool) {
	if k := w.kinds[kind]; !w.HasRead(kind) || k.Namespaced && w.Namespace != "" && w.Namespace != namespace {
		return nil, false
	}
	add := func(v *graph.View) {
		if m := w.Meta(v.UID); m != nil {
			objects = append(objects, m)
		}
	}
	if namespace != "" {
		for v := range w.in(namespace, []schema.GroupResource{kind}) {
			add(&v)
		}
	} else {
		for v := range w.objects() {
			if v.Kind == kind {
				add(v)
			}
		}
	}
	slices.SortFunc(objects, func(a, b *metav1.PartialObjectMetadata) int {
		if a.Namespace == b.Namespace {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Compare(a.Namespace+"/", b.Namespace+"/") // the key in the storage
	})
	return objects, true
}

// told is what a live read would say about an owner of an object: lists that were complete prove
// that there is none. But where the object was written after the owner's kind was listed, the owner
// may have come after that, too.
func (w *World) told(c graph.Claim, of types.UID) graph.LookupAnswered {
	out := graph.LookupAnswered{Claim: c, Answer: graph.Unanswered, Reason: "objects of this kind were not read"}
	covered := w.Namespace == "" || !c.Namespaced || c.Namespace == w.Namespace
	_, read := w.read[c.Resource]
	switch u, failed := w.unread[c.Resource]; {
	case failed && u.Forbidden:
		out.Answer, out.Reason = graph.Denied, u.Reason
	case failed:
		out.Reason = u.Reason
	case covered && read:
		if out.Reason = w.mayHaveCome(c.Resource, of); out.Reason == "" {
			out.Answer = graph.Absent
		}
	}
	return out
}

// settle looks up all owners of an object of which nothing is known.
func (w *World) settle(uid types.UID) {
	for a := w.Graph.Decide(uid); a.Verb == graph.Lookup; a = w.Graph.Decide(uid) {
		w.Graph.Apply(graph.LookupStarted{Claim: a.Claim})
		w.Graph.Apply(w.told(a.Claim, uid))
	}
}

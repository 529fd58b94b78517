package insight

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// World is what was read of a cluster: all objects, or those of one namespace.
type World struct {
	Graph *graph.Graph
	// Namespace is the namespace whose objects were read, with the cluster-scoped kinds that they
	// name as owners; surveys cover the namespace alone. Empty: the whole cluster was read.
	Namespace string

	kinds  map[schema.GroupResource]graph.Resource
	meta   map[types.UID]*metav1.PartialObjectMetadata
	unread map[schema.GroupResource]Unread
	read   map[schema.GroupResource]string // the kinds that were listed, and at which resourceVersion
	missed []Unread                        // what else could not be read

	aggregated map[string]bool // API groups that another API server serves

	refused map[types.UID]refusal // objects about which a request of Weir's controller is refused
}

// Unread is a kind that could not be listed, so answers may lack objects of it; or something else
// that an answer rests on, which Kind then describes in words.
type Unread struct {
	Kind      string `json:"kind"`
	Reason    string `json:"reason"`
	Forbidden bool   `json:"forbidden,omitempty"`
	// Besides reports whether Kind is not a kind whose objects may be missing, but something that
	// is read of some objects only.
	Besides bool `json:"besides,omitempty"`
}

// NewWorld returns a World that knows the kinds that the cluster serves, and no objects.
func NewWorld(namespace string, kinds []graph.Resource) *World {
	w := &World{
		Graph: graph.New(), Namespace: namespace, kinds: map[schema.GroupResource]graph.Resource{},
		meta:   map[types.UID]*metav1.PartialObjectMetadata{},
		unread: map[schema.GroupResource]Unread{}, read: map[schema.GroupResource]string{},
		refused: map[types.UID]refusal{}, aggregated: map[string]bool{},
	}
	for _, k := range kinds {
		w.kinds[k.GroupResource()] = k
	}
	w.Graph.Apply(graph.Serving{Resources: kinds})
	return w
}

// List records all objects of a kind, as they were at a resourceVersion. It keeps the objects and
// changes them: managedFields stay only on objects with finalizers, to tell who wrote these.
func (w *World) List(kind schema.GroupResource, resourceVersion string, objects []metav1.PartialObjectMetadata) {
	w.Graph.Apply(graph.ListBegins{Kind: kind})
	for i := range objects {
		m := &objects[i]
		if len(m.Finalizers) == 0 && m.ManagedFields != nil {
			m.ManagedFields = nil
		}
		if kind == apiServices {
			w.Served(m)
		}
		w.Graph.Apply(graph.Observed{Object: graph.ObjectOf(kind, m)})
		w.meta[m.UID] = m
	}
	w.Graph.Apply(graph.ListEnds{Kind: kind})
	w.read[kind] = resourceVersion
}

// HasRead reports whether the objects of a kind are known.
func (w *World) HasRead(kind schema.GroupResource) bool {
	_, read := w.read[kind]
	return read
}

// NotListed records that a kind could not be listed.
func (w *World) NotListed(kind schema.GroupResource, forbidden bool, reason string) {
	w.unread[kind] = Unread{Kind: kind.String(), Reason: reason, Forbidden: forbidden}
	w.Graph.Apply(graph.ListFailed{Kind: kind, Forbidden: forbidden, Reason: reason})
}

// allOf begins the Kind of an Unread that is an API group and version.
const allOf = "all of "

// Unheard records that discovery failed for an API group and version, so its kinds are unknown.
func (w *World) Unheard(groupVersion, reason string) {
	all := schema.GroupResource{Resource: "*", Group: groupVersion}
	w.unread[all] = Unread{Kind: allOf + groupVersion, Reason: reason}
}

// Missed records, once for each what, that something besides the list of a kind could not be read.
func (w *World) Missed(what string, forbidden bool, reason string) {
	if !slices.ContainsFunc(w.missed, func(u Unread) bool { return u.Kind == what }) {
		w.missed = append(w.missed, Unread{Kind: what, Reason: reason, Forbidden: forbidden, Besides: true})
	}
}

// Unread returns the kinds that could not be listed, and what else could not be read, sorted.
func (w *World) Unread() []Unread {
	out := append(make([]Unread, 0, len(w.missed)+len(w.unread)), w.missed...)
	for _, u := range w.unread {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Unread) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// Unreadable reports whether a kind could not be listed.
func (w *World) Unreadable(kind schema.GroupResource) bool {
	_, failed := w.unread[kind]
	return failed
}

// OwnerKinds returns the cluster-scoped kinds that objects of the namespace name as owners and that
// were not read yet, sorted.
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

// GoesBeyond reports whether deletions may go on outside the namespace that was read: a
// cluster-scoped owner that is being deleted may wait for objects there, be deleted after them, and
// so on.
func (w *World) GoesBeyond() bool {
	if w.Namespace == "" {
		return false
	}
	for v := range w.objects() {
		if v.Namespace == "" && (v.Foreground || v.Orphaning) && len(w.Graph.Dependents(v.UID)) > 0 {
			return true
		}
	}
	return false
}

// incomplete says what may hold dependents of an object and was not read; empty if nothing may.
func (w *World) incomplete(v *graph.View) string {
	if v.Namespace == "" && w.Namespace != "" && v.Kind != namespaces {
		return "objects of other namespaces"
	}
	return w.Graph.Incomplete(v.UID)
}

// surveyed yields the objects that surveys cover.
func (w *World) surveyed() iter.Seq[*graph.View] {
	return func(yield func(*graph.View) bool) {
		for v := range w.objects() {
			if (w.Namespace == "" || v.Namespace == w.Namespace) && !yield(v) {
				return
			}
		}
	}
}

// objects yields all objects that were read. While it runs, the graph may only learn of owners.
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

// Serves reports whether the cluster serves a kind.
func (w *World) Serves(kind schema.GroupResource) bool {
	_, ok := w.kinds[kind]
	return ok
}

// Find returns the uid of an object by its name. It scans all objects.
func (w *World) Find(kind schema.GroupResource, namespace, name string) (types.UID, bool) {
	for v := range w.objects() {
		if v.Kind == kind && v.Namespace == namespace && v.Name == name {
			return v.UID, true
		}
	}
	return "", false
}

// Meta returns the metadata of an object as it was read, or nil.
func (w *World) Meta(uid types.UID) *metav1.PartialObjectMetadata { return w.meta[uid] }

// Listed returns the metadata of the objects of a kind in a namespace, or in all if namespace is
// empty. They are in the order in which the API server stores them: by namespace and name. known is
// false if it is not known which objects exist.
func (w *World) Listed(
	kind schema.GroupResource, namespace string,
) (objects []*metav1.PartialObjectMetadata, known bool) {
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

// lookup answers the lookup of an owner from the lists. A complete list proves that the owner is
// absent, unless the object was written after the list: then the owner may have been created after
// it, too.
func (w *World) lookup(c graph.Claim, of types.UID) graph.LookupAnswered {
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

// settle looks up all unknown owners of an object.
func (w *World) settle(uid types.UID) {
	for a := w.Graph.Decide(uid); a.Verb == graph.Lookup; a = w.Graph.Decide(uid) {
		w.Graph.Apply(graph.LookupStarted{Claim: a.Claim})
		w.Graph.Apply(w.lookup(a.Claim, uid))
	}
}

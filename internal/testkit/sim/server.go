package sim

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

const (
	orphan     = metav1.FinalizerOrphanDependents
	foreground = metav1.FinalizerDeleteDependents
)

// server is an API server: objects, versions, finalizers, and what a DELETE does (RB 6).
type server struct {
	kinds   []*kind
	version uint64
	uids    int
	longUID bool
	// buried are all objects that are gone, as they were last.
	buried map[types.UID]*object
	ending map[string]int // namespaces that are being deleted, each with a number of its own
	ended  int            // how many were
}

// kind is one resource with everything that ever happened to it: what a watch shows.
type kind struct {
	graph.Resource
	served    bool
	ending    bool // its CRD is being deleted: it is served until the last object is gone
	forbidden bool // the collector may neither list nor read it
	graceful  bool // objects linger after a DELETE, until a process reports them finished
	sick      bool // requests about its objects are slow, and often sent away
	objects   map[types.UID]*object
	log       []change
	restored  int // how much of the log shows what a restored server found: no list ends within
}

type change struct {
	object *object // as it was then
	gone   bool
}

type object struct {
	graph.Object
	lingers bool // deleted gracefully, not finished yet
	// What it ever was: a collector that is behind may still act on it.
	wasForeground, wasOrphaning bool
	// Held by a finalizer of ours, it does not go foreground before policies were asked, and then
	// as it ever was.
	askedForeground, ruled bool
	ledger                 ledger
}

func (o *object) has(finalizer string) bool { return slices.Contains(o.Finalizers, finalizer) }
func (o *object) orphaning() bool           { return o.Deleting && o.has(orphan) }
func (o *object) foreground() bool          { return o.Deleting && o.has(foreground) }

func (o *object) clone() *object {
	c := *o
	c.Owners = slices.Clone(o.Owners)
	c.Finalizers = slices.Clone(o.Finalizers)
	c.ledger = o.ledger.clone()
	return &c
}

// outcome is how a request ended.
type outcome int

const (
	done outcome = iota
	conflict
	notFound
	refused
	lost // it may have been carried out
)

func (s *server) kind(gr schema.GroupResource) *kind {
	for _, k := range s.kinds {
		if k.GroupResource() == gr {
			return k
		}
	}
	return nil
}

// typeOf finds the kind that a reference names; nil if none is served under that name.
func (s *server) typeOf(r metav1.OwnerReference) *kind {
	for _, k := range s.kinds {
		for _, v := range k.Versions {
			if k.Kind == r.Kind && (schema.GroupVersion{Group: k.Group, Version: v}).String() == r.APIVersion {
				return k
			}
		}
	}
	return nil
}

// at returns the object under a name.
func (k *kind) at(namespace, name string) *object {
	for _, o := range k.objects {
		if o.Namespace == namespace && o.Name == name {
			return o
		}
	}
	return nil
}

// owner returns what a reference of an object means: exactly as it says, or nothing.
func (s *server) owner(r metav1.OwnerReference, namespace string) *object {
	k := s.typeOf(r)
	if k == nil || !k.served {
		return nil
	}
	return meant(k.objects[r.UID], k, r, namespace)
}

func meant(o *object, k *kind, r metav1.OwnerReference, namespace string) *object {
	if o == nil || o.Kind != k.GroupResource() || o.Name != r.Name || k.Namespaced && o.Namespace != namespace {
		return nil
	}
	return o
}

func (s *server) newUID() types.UID {
	s.uids++
	if s.longUID {
		return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(s.uids*2654435761), s.uids))
	}
	return types.UID("u" + strconv.Itoa(s.uids))
}

// wrote gives an object its next version and shows it to the watches.
func (s *server) wrote(o *object) {
	s.version++
	o.ResourceVersion = strconv.FormatUint(s.version, 10)
	o.askedForeground = o.askedForeground || o.foreground()
	o.wasForeground = o.wasForeground || o.askedForeground && (o.ruled || !o.has(ours))
	o.wasOrphaning = o.wasOrphaning || o.orphaning()
	k := s.kind(o.Kind)
	k.log = append(k.log, change{object: o.clone()})
}

func (s *server) create(gr schema.GroupResource, namespace, name string, owners []metav1.OwnerReference, finalizers []string) {
	k := s.kind(gr)
	if !k.served || k.ending || s.ending[namespace] != 0 || k.at(namespace, name) != nil {
		return
	}
	o := &object{Object: graph.Object{
		Kind: gr, UID: s.newUID(), Namespace: namespace, Name: name, Owners: owners, Finalizers: finalizers,
	}}
	k.objects[o.UID] = o
	s.note(o)
	s.wrote(o)
}

// bury takes an object off the server.
func (s *server) bury(o *object) {
	k := s.kind(o.Kind)
	s.version++
	k.log = append(k.log, change{object: o.clone(), gone: true})
	delete(k.objects, o.UID)
	s.buried[o.UID] = o
	if k.ending && len(k.objects) == 0 {
		k.served, k.ending = false, false
	}
}

// put writes an object that was changed; one that is being deleted and has nothing to wait for goes
// (RB 6.36).
func (s *server) put(o *object) {
	if o.Deleting && len(o.Finalizers) == 0 && !o.lingers {
		s.bury(o)
		return
	}
	s.wrote(o)
}

// preconditions are what a request demands of the object that it finds: "" demands nothing.
type preconditions struct {
	uid     types.UID
	version string
}

func (p preconditions) met(o *object) bool {
	return (p.uid == "" || p.uid == o.UID) && (p.version == "" || p.version == o.ResourceVersion)
}

// target finds the object of a request by its name, as a request does.
func (s *server) target(ref graph.Ref, p preconditions) (*object, outcome) {
	k := s.kind(ref.Kind)
	if k == nil || !k.served {
		return nil, notFound
	}
	o := k.at(ref.Namespace, ref.Name)
	if o == nil {
		return nil, notFound
	}
	if !p.met(o) {
		return nil, conflict
	}
	return o, done
}

// remove is DELETE (RB 6.2, 6.34).
func (s *server) remove(o *object, propagation metav1.DeletionPropagation) {
	if o.lingers {
		return // gracefully pending: a further DELETE changes nothing
	}
	before := slices.Clone(o.Finalizers)
	strip := func(finalizer string) {
		o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == finalizer })
	}
	add := func(finalizer string) {
		if !o.has(finalizer) {
			o.Finalizers = append(o.Finalizers, finalizer)
		}
	}
	switch propagation {
	case metav1.DeletePropagationBackground:
		strip(orphan)
		strip(foreground)
	case metav1.DeletePropagationForeground:
		strip(orphan)
		add(foreground)
	case metav1.DeletePropagationOrphan:
		strip(foreground)
		add(orphan)
	}
	if o.Deleting && slices.Equal(before, o.Finalizers) {
		return
	}
	o.lingers = !o.Deleting && s.kind(o.Kind).graceful
	o.Deleting = true
	s.put(o)
}

// setOwners is a patch of the references.
func (s *server) setOwners(o *object, owners []metav1.OwnerReference) {
	o.Owners = slices.Clone(owners)
	s.note(o)
	s.put(o)
}

// setFinalizers is a patch of the finalizers; a terminating object gets no new ones (RB 6.33), and
// none may have both of the garbage collector's (RB 6.4).
func (s *server) setFinalizers(o *object, finalizers []string) {
	if slices.Contains(finalizers, orphan) && slices.Contains(finalizers, foreground) {
		return
	}
	if o.Deleting {
		for _, f := range finalizers {
			if !o.has(f) {
				return
			}
		}
	}
	if slices.Equal(o.Finalizers, finalizers) {
		return
	}
	o.Finalizers = slices.Clone(finalizers)
	s.put(o)
}

// all returns every object, oldest first.
func (s *server) all() []*object {
	var out []*object
	for _, k := range s.kinds {
		for _, o := range k.objects {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object) int { return compareVersions(a.ResourceVersion, b.ResourceVersion) })
	return out
}

func compareVersions(a, b string) int {
	x, _ := strconv.ParseUint(a, 10, 64)
	y, _ := strconv.ParseUint(b, 10, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

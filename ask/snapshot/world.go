package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// scope is what a World covers: the namespace and the cluster-scoped owners that its objects name,
// or with all also everything that is cluster-scoped. An empty namespace is all namespaces.
type scope struct {
	namespace string
	all       bool
}

// kept is a World that is brought up to date when a caller asks for it. It is never handed out
// itself: callers get clones.
type kept struct {
	scope
	world   *insight.World
	version int64 // the version of the Follower up to which the World is current
	// widens reports that the World of the cluster has to be used instead.
	widens bool
	// names reports that cluster-scoped kinds were read because objects of the namespace name owners
	// of them. After a change these may be other kinds.
	names bool
	used  int64 // the turn in which it was last asked for
}

// mostKept is how many Worlds are kept: one for the cluster, and some for namespaces that are
// viewed by turns.
const mostKept = 3

// World returns what is known now of a namespace, or of all that is followed if namespace is empty,
// as Read would return it. The caller owns the result.
func (f *Follower) World(namespace string) (*insight.World, error) {
	f.making.Lock()
	defer f.making.Unlock()
	k, err := f.current(scope{cmp.Or(namespace, f.namespace), namespace == ""})
	if err == nil && k.widens {
		k, err = f.current(scope{f.namespace, true})
	}
	if err != nil {
		return nil, err
	}
	w := k.world.Clone()
	if k.all {
		w.Asked = namespace
	}
	return w, nil
}

// About returns the World of an object. partly says why it lacks dependents of the object: only one
// namespace is followed, and a cluster-scoped object may have dependents in others. The World says
// so, too. The dependents of the namespace itself are all known.
func (f *Follower) About(o insight.Object) (w *insight.World, partly string, err error) {
	w, err = f.World(o.Namespace)
	own := o.Namespace != "" || o.Kind == kinds.Namespaces.String() && o.Name == f.namespace
	if err != nil || f.namespace == "" || own && !w.Widens() {
		return w, "", err
	}
	partly = fmt.Sprintf("only the namespace %q is followed", f.namespace)
	w.Missed("what is in other namespaces", false, partly)
	return w, partly, nil
}

// Elsewhere looks in all followed namespaces for owners that are not in the World's.
func (f *Follower) Elsewhere(w *insight.World, sought []insight.Sought) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range sought {
		k := f.kinds[s.Kind.GroupResource()]
		if k == nil {
			continue
		}
		w.Elsewhere(s, func(yield func(*metav1.PartialObjectMetadata) bool) {
			for _, objects := range k.objects {
				for uid := range s.UIDs {
					if m := objects[uid]; m != nil && !yield(m) {
						return
					}
				}
			}
		})
	}
}

// current returns the World of a scope, up to date. The caller holds making.
func (f *Follower) current(s scope) (*kept, error) {
	f.turn++
	at := slices.IndexFunc(f.worlds, func(k *kept) bool { return k.scope == s })
	if at >= 0 {
		if k := f.worlds[at]; f.further(k) {
			k.used = f.turn
			return k, nil
		}
		f.worlds = slices.Delete(f.worlds, at, at+1)
	}
	k, err := f.rebuild(s)
	if err != nil {
		return nil, err
	}
	k.used = f.turn
	if len(f.worlds) == mostKept {
		oldest := slices.MinFunc(f.worlds, func(a, b *kept) int { return cmp.Compare(a.used, b.used) })
		f.worlds = slices.DeleteFunc(f.worlds, func(k *kept) bool { return k == oldest })
	}
	f.worlds = append(f.worlds, k)
	return k, nil
}

// change is an object that was created, changed or deleted.
type change struct {
	version int64 // the version of the Follower that includes it
	kind    graph.Resource
	object  *metav1.PartialObjectMetadata // its last state
	gone    bool
}

// mostChanges is how many changes are remembered. A World that is further behind is built again.
const mostChanges = 8192

// note records that an object has changed. The caller holds mu.
func (k *followed) note(m *metav1.PartialObjectMetadata, gone bool) {
	f := k.follower
	if f.kinds[k.kind.GroupResource()] != k {
		return // a last event of a stopped reflector
	}
	f.note(m.Namespace)
	if len(f.changes) == mostChanges {
		half := f.changes[mostChanges/2:]
		f.forgotten = f.changes[mostChanges/2-1].version
		f.changes = append(make([]change, 0, mostChanges), half...)
	}
	f.changes = append(f.changes, change{f.version, k.kind, m, gone})
}

// further brings a World up to date. It returns false if the World has to be built again.
func (f *Follower) further(k *kept) bool {
	f.mu.Lock()
	if k.version < f.forgotten || k.version < f.renewed || k.widens && k.version < f.version {
		f.mu.Unlock()
		return false
	}
	at, _ := slices.BinarySearchFunc(f.changes, k.version+1,
		func(c change, v int64) int { return cmp.Compare(c.version, v) })
	changes := slices.Clone(f.changes[at:])
	heard := make(map[schema.GroupResource]string, len(f.kinds))
	for gr, of := range f.kinds {
		heard[gr] = of.version
	}
	version := f.version
	f.mu.Unlock()
	if k.widens {
		return true
	}
	for i := range changes {
		if !k.take(&changes[i]) {
			return false
		}
	}
	for gr, at := range heard {
		if k.world.HasRead(gr) {
			k.world.Read(gr, at)
		}
	}
	k.version = version
	return true
}

// take applies a change. It returns false if more than the object has to be read for that.
func (k *kept) take(c *change) bool {
	gr := c.kind.GroupResource()
	switch {
	case c.kind.Namespaced && k.namespace != "" && c.object.Namespace != k.namespace:
		return true
	case !k.world.HasRead(gr):
		return true // the kind is not read, or cannot be listed; renew tells when it can be
	case k.names:
		return false
	case c.gone:
		k.world.Unlist(gr, c.object.UID)
		return true
	}
	k.world.Observe(gr, c.object)
	return k.all || len(k.world.OwnerKindsOf(c.object.UID)) == 0
}

// rebuild makes a World from all that is known.
func (f *Follower) rebuild(s scope) (*kept, error) {
	f.mu.Lock()
	if f.lost != "" && len(f.kinds) == 0 {
		defer f.mu.Unlock()
		return nil, errors.New(f.lost)
	}
	w := insight.NewWorld(s.namespace, slices.Clone(f.all))
	for gv, reason := range f.unheard {
		w.Unheard(gv, reason)
	}
	// Under the lock, objects are only copied.
	version := f.version
	var lists []known
	owners := map[schema.GroupResource]known{}
	for gr, k := range f.kinds {
		l := k.known(s.namespace)
		if k.kind.Namespaced || s.all {
			lists = append(lists, l)
		} else {
			owners[gr] = l
		}
	}
	f.mu.Unlock()
	slices.SortFunc(lists, func(a, b known) int { return cmp.Compare(a.kind.String(), b.kind.String()) })
	for i := range lists {
		lists[i].into(w)
	}
	names := false
	for !s.all {
		wanted := w.OwnerKinds()
		if len(wanted) == 0 {
			break
		}
		names = true
		for _, k := range wanted {
			gr := k.GroupResource()
			l, ok := owners[gr]
			if !ok {
				l = known{kind: gr, problem: "it is not followed yet"}
			}
			l.into(w)
		}
	}
	k := &kept{scope: s, world: w, version: version, names: names, widens: !s.all && w.Widens()}
	if k.widens {
		k.world = nil
	}
	return k, nil
}

// known is what is known of a kind.
type known struct {
	kind    schema.GroupResource
	version string
	objects []*metav1.PartialObjectMetadata
	problem string
	denied  bool
}

func (k *followed) known(namespace string) known {
	l := known{kind: k.kind.GroupResource(), version: k.version, problem: k.problem, denied: k.denied}
	if !k.synced && l.problem == "" {
		l.problem = "its first list has not come yet"
	}
	for in, objects := range k.objects {
		if namespace == "" || in == namespace || in == "" {
			l.objects = slices.AppendSeq(l.objects, maps.Values(objects))
		}
	}
	return l
}

// into adds what is known of a kind to a World. A kind that cannot be followed now counts as not
// listed: its objects may have changed.
func (k known) into(w *insight.World) {
	if k.problem != "" {
		w.NotListed(k.kind, k.denied, k.problem)
		return
	}
	slices.SortFunc(k.objects, func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	w.ListOf(k.kind, k.version, slices.Values(k.objects))
}

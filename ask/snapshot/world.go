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

// scope is what a World is about: a namespace, and all that is in none or only what the namespace's
// objects name as owners. An empty namespace is all of them.
type scope struct {
	namespace string
	all       bool
}

// kept is a World that is brought up to date whenever a caller asks, and never asked itself: who
// asks gets a clone.
type kept struct {
	scope
	world   *insight.World
	version int64 // of the Follower, as far as the World knows
	// widens: what is asked about the namespace is to be asked about the cluster.
	widens bool
	// names: cluster-scoped kinds were read for it because objects of the namespace name owners of
	// them. Which those are may be otherwise after a change.
	names bool
	used  int64 // when it was asked for last: the turn
}

// mostKept is how many Worlds are kept: one for the cluster, and some for namespaces that are
// looked at by turns.
const mostKept = 3

// World is what is known now of a namespace, or of all that is followed if it is empty, as Read
// would tell it. It is the caller's.
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

// About is the World of an object. partly says why it does not show all that depends on the object:
// one namespace is followed, and an object that is in none may have dependents in others. The World
// says so, too. What is in the namespace itself is known.
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

// Elsewhere looks in all namespaces that are followed for owners that are not in the World's.
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

// current is what is known now of a scope. making is held.
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

// change is an object that came, changed or went.
type change struct {
	version int64 // of the Follower with it
	kind    graph.Resource
	object  *metav1.PartialObjectMetadata // as it was last
	gone    bool
}

// mostChanges is how many changes are remembered: a World that knows none of more is made again.
const mostChanges = 8192

// note says that an object has changed. The lock is held.
func (k *followed) note(m *metav1.PartialObjectMetadata, gone bool) {
	f := k.follower
	if f.kinds[k.kind.GroupResource()] != k {
		return // a last event of a reflector that was told to stop
	}
	f.note(m.Namespace)
	if len(f.changes) == mostChanges {
		half := f.changes[mostChanges/2:]
		f.forgotten = f.changes[mostChanges/2-1].version
		f.changes = append(make([]change, 0, mostChanges), half...)
	}
	f.changes = append(f.changes, change{f.version, k.kind, m, gone})
}

// further brings a World up to date; false if it has to be made again.
func (f *Follower) further(k *kept) bool {
	f.mu.Lock()
	if k.version < f.forgotten || k.version < f.renewed || k.widens && k.version < f.version {
		f.mu.Unlock()
		return false
	}
	at, _ := slices.BinarySearchFunc(f.changes, k.version+1, func(c change, v int64) int { return cmp.Compare(c.version, v) })
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

// take takes a change in; false if more than the object has to be read for it.
func (k *kept) take(c *change) bool {
	gr := c.kind.GroupResource()
	switch {
	case c.kind.Namespaced && k.namespace != "" && c.object.Namespace != k.namespace:
		return true
	case !k.world.HasRead(gr):
		return true // it is not looked at, or cannot be listed: that it can be is no change of an object
	case k.names:
		return false
	case c.gone:
		k.world.Unlist(gr, c.object.UID)
		return true
	}
	k.world.Observe(gr, c.object)
	return k.all || len(k.world.OwnerKindsOf(c.object.UID)) == 0
}

// rebuild makes a World of all that is known.
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
	// What is followed is only copied under the lock.
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

// into takes what is known of a kind into a World. A kind that is not followed now is not one that
// has been read: what was known of it may be wrong by now.
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

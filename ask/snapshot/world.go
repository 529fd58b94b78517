package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/kinds"
)

// World returns what is known now, for questions about a namespace, or about all that is followed if
// namespace is empty. The caller owns the result.
func (f *Follower) World(namespace string) (*insight.World, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != "" && len(f.kinds) == 0 {
		return nil, errors.New(f.lost)
	}
	if f.world == nil {
		f.world = f.make()
	}
	for gr, k := range f.kinds {
		if f.world.HasRead(gr) {
			f.world.Read(gr, k.version)
		}
	}
	w := f.world.Clone()
	w.Asked = namespace
	return w, nil
}

// About returns the World of an object. partly says why it lacks dependents of the object: only one
// namespace is followed, and a cluster-scoped object may have dependents in others. The World says
// so, too. The dependents of the namespace itself are all known.
func (f *Follower) About(o insight.Object) (w *insight.World, partly string, err error) {
	w, err = f.World(o.Namespace)
	own := o.Namespace != "" || o.Kind == kinds.Namespaces.String() && o.Name == f.namespace
	if err != nil || f.namespace == "" || own && !w.GoesBeyond() {
		return w, "", err
	}
	partly = fmt.Sprintf("only the namespace %q is followed", f.namespace)
	w.Missed("what is in other namespaces", false, partly)
	return w, partly, nil
}

// make makes a World from all that is known. The caller holds mu.
func (f *Follower) make() *insight.World {
	w := insight.NewWorld(f.namespace, slices.Clone(f.all))
	for gv, reason := range f.unheard {
		w.Unheard(gv, reason)
	}
	var all []*followed
	for _, k := range f.kinds {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *followed) int {
		return cmp.Compare(a.kind.GroupResource().String(), b.kind.GroupResource().String())
	})
	for _, k := range all {
		k.into(w)
	}
	return w
}

// into adds what is known of a kind to a World. A kind that cannot be followed now counts as not
// listed: its objects may have changed.
func (k *followed) into(w *insight.World) {
	gr, problem := k.kind.GroupResource(), k.problem
	if problem == "" && !k.synced {
		problem = "its first list has not come yet"
	}
	if problem != "" {
		w.NotListed(gr, k.denied, problem)
		return
	}
	var objects []*metav1.PartialObjectMetadata
	for _, in := range k.objects {
		for _, m := range in {
			objects = append(objects, m)
		}
	}
	slices.SortFunc(objects, func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	w.ListOf(gr, k.version, slices.Values(objects))
}

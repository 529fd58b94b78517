package snapshot

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/insight"
)

// World is what is known now of a namespace, or of all that is followed if it is empty, as Read would tell it.
func (f *Follower) World(namespace string) (*insight.World, error) {
	all := namespace == ""
	namespace = cmp.Or(namespace, f.namespace)
	f.mu.Lock()
	if f.lost != "" && len(f.kinds) == 0 {
		defer f.mu.Unlock()
		return nil, errors.New(f.lost)
	}
	w := insight.NewWorld(namespace, slices.Clone(f.all))
	for gv, reason := range f.unheard {
		w.Unheard(gv, reason)
	}
	// What is followed is only copied under the lock.
	var lists []known
	owners := map[schema.GroupResource]known{}
	for gr, k := range f.kinds {
		l := k.known(namespace)
		if k.kind.Namespaced || all {
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
	for !all {
		wanted := w.OwnerKinds()
		if len(wanted) == 0 {
			break
		}
		for _, k := range wanted {
			gr := k.GroupResource()
			l, ok := owners[gr]
			if !ok {
				l = known{kind: gr, problem: "it is not followed yet"}
			}
			l.into(w)
		}
	}
	if !all && w.Widens() {
		return f.World("")
	}
	return w, nil
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

// into takes what is known of a kind into a World. A kind that is not followed now is not one that has been read: what was
// known of it may be wrong by now.
func (k known) into(w *insight.World) {
	if k.problem != "" {
		w.NotListed(k.kind, k.denied, k.problem)
		return
	}
	slices.SortFunc(k.objects, func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	objects := make([]metav1.PartialObjectMetadata, len(k.objects))
	for i, m := range k.objects {
		objects[i] = *m
	}
	w.List(k.kind, k.version, objects)
}

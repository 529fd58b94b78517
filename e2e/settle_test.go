package e2e

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// ownerThatNeverWas is an owner that never existed.
func ownerThatNeverWas() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "nobody", UID: uuid.NewUUID()}
}

// settle returns when weir has seen all that happened before, and has nothing
// left to do about it: the claim that an object stays needs no pause then.
//
// Of each kind that the test used it makes one more object, garbage from the
// start. A watch shows the objects of a kind in order, so when that one is
// collected, everything before it was seen. What has nothing to do leaves
// weir's queue; when the queue is empty, all of it was decided. Kinds that were
// taken out of the fixture's kinds are not asked.
func (w *fixture) settle() {
	w.Helper()
	used := map[string]object{}
	for _, o := range w.made {
		if slices.ContainsFunc(slices.Collect(maps.Values(w.kinds)), func(k kind) bool { return k.gvr() == o.gvr() }) {
			used[o.resource+"."+o.Group+" "+o.namespace] = o
		}
	}
	var canaries []string
	for i, place := range slices.Sorted(maps.Keys(used)) {
		o := used[place]
		name := fmt.Sprintf("canary-%s-%d", uuid.NewUUID()[:8], i)
		manifest, err := o.manifest(name, []metav1.OwnerReference{ownerThatNeverWas()}, nil)
		if err != nil {
			w.Fatal(err)
		}
		made, err := w.at(o).Create(w.Context(), manifest, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		o.name, o.uid = name, made.GetUID()
		w.made[name] = o
		canaries = append(canaries, name)
	}
	w.awaitGone(canaries...)
	for _, name := range canaries {
		delete(w.made, name)
	}
	if err := w.weir.AwaitIdle(w.Context()); err != nil {
		w.Fatal(err)
	}
}

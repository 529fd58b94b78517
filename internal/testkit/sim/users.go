package sim

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Finalizers of other controllers: one is taken off some time after the deletion, one never.
const (
	slow  = "example.com/slow"
	stuck = "example.com/stuck"
)

var propagations = []metav1.DeletionPropagation{
	metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan, "",
}

// mostObjects is how many a user makes at most: so few that they meet.
const mostObjects = 24

// act is one thing that some user does.
func (w *cluster) act() {
	all := w.server.all()
	if len(all) == 0 || len(all) < mostObjects && w.chance(45) {
		w.create()
		return
	}
	o := pick(w, all)
	switch n := w.IntN(100); {
	case n < 22:
		w.server.remove(o, pick(w, propagations))
	case n < 40: // again, with another wish
		if o = w.deleting(all); o != nil {
			w.server.remove(o, pick(w, propagations))
		}
	case n < 62:
		refs := append(slices.Clone(o.Owners), w.reference(o.Namespace))
		w.server.setOwners(o, refs)
	case n < 72:
		if len(o.Owners) > 0 {
			i := w.IntN(len(o.Owners))
			w.server.setOwners(o, slices.Delete(slices.Clone(o.Owners), i, i+1))
		}
	case n < 82:
		if len(o.Owners) > 0 {
			refs := slices.Clone(o.Owners)
			refs[w.IntN(len(refs))].BlockOwnerDeletion = w.maybe()
			w.server.setOwners(o, refs)
		}
	case n < 86: // a heartbeat: another version, and nothing else
		w.server.put(o)
	case n < 91:
		if f := pick(w, []string{slow, slow, orphan, foreground, ours}); !o.has(f) {
			w.server.setFinalizers(o, append(slices.Clone(o.Finalizers), f))
		}
	case n < 93: // by force
		if len(o.Finalizers) > 0 && !w.chance(50) {
			i := w.IntN(len(o.Finalizers))
			w.server.setFinalizers(o, slices.Delete(slices.Clone(o.Finalizers), i, i+1))
		}
	case n < 95:
		w.toggle()
	case n < 96:
		if w.chance(40) {
			for range 4 { // in time, some of them
				w.create()
			}
			w.server.end(pick(w, []string{"x", "y"}))
		}
	default:
		w.finish(all)
	}
}

func (w *cluster) deleting(all []*object) *object {
	var some []*object
	for _, o := range all {
		if o.Deleting {
			some = append(some, o)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return pick(w, some)
}

func (w *cluster) create() {
	k := pick(w, w.server.kinds)
	namespace := ""
	if k.Namespaced {
		namespace = pick(w, []string{"x", "x", "y"})
	}
	var owners []metav1.OwnerReference
	for range pick(w, []int{0, 0, 1, 1, 1, 2, 2, 3}) {
		owners = append(owners, w.reference(namespace))
	}
	var finalizers []string
	for _, f := range []struct {
		name    string
		percent int
	}{{slow, 15}, {stuck, 2}, {orphan, 3}, {foreground, 3}, {ours, 15}} {
		if w.chance(f.percent) && (f.name != foreground || !slices.Contains(finalizers, orphan)) {
			finalizers = append(finalizers, f.name)
		}
	}
	w.server.create(k.GroupResource(), namespace, fmt.Sprintf("n%d", w.IntN(6)), owners, finalizers)
}

// reference is to an object that is there, mostly; or that was; or it is wrong somehow.
func (w *cluster) reference(namespace string) metav1.OwnerReference {
	candidates := w.server.all()
	if w.chance(12) || len(candidates) == 0 {
		for _, uid := range sortedKeys(w.server.buried) {
			candidates = append(candidates, w.server.buried[uid])
		}
	}
	r := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: types.UID(fmt.Sprintf("never%d", w.IntN(3)))}
	near := slices.DeleteFunc(slices.Clone(candidates), func(o *object) bool { return o.Namespace != "" && o.Namespace != namespace })
	if len(near) > 0 && !w.chance(10) {
		candidates = near
	}
	if len(candidates) > 0 && !w.chance(3) {
		o := pick(w, candidates)
		k := w.server.kind(o.Kind)
		r = metav1.OwnerReference{
			APIVersion: schema.GroupVersion{Group: k.Group, Version: pick(w, k.Versions)}.String(),
			Kind:       k.Kind, Name: o.Name, UID: o.UID,
		}
	}
	if w.chance(3) {
		r.Name = "wrong"
	}
	if w.chance(3) {
		r.Kind = pick(w, []string{"Pod", "ConfigMap", "Gizmo"})
	}
	r.BlockOwnerDeletion, r.Controller = w.maybe(), w.maybe()
	return r
}

func (w *cluster) maybe() *bool {
	yes := true
	return pick(w, []*bool{nil, &yes, &yes, new(bool)})
}

// toggle deletes a CRD with all its objects, or creates it again.
func (w *cluster) toggle() {
	for _, k := range w.server.kinds {
		if k.Group == "" {
			continue
		}
		if !k.served {
			k.served = true
			return
		}
		if k.ending = true; len(k.objects) == 0 {
			k.served, k.ending = false, false
		}
		for _, uid := range sortedKeys(k.objects) {
			w.server.remove(k.objects[uid], metav1.DeletePropagationBackground)
		}
		return
	}
}

// finish is what other controllers do about deletions: a kubelet reports, a finalizer comes off.
func (w *cluster) finish(all []*object) {
	for _, i := range w.perm(len(all)) {
		o := all[i]
		if o.lingers {
			o.lingers = false
			w.server.put(o)
			return
		}
		if o.Deleting && o.has(slow) {
			w.server.setFinalizers(o, slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == slow }))
			return
		}
	}
}

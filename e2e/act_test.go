package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	none       metav1.DeletionPropagation = ""
	background                            = metav1.DeletePropagationBackground
	foreground                            = metav1.DeletePropagationForeground
	orphan                                = metav1.DeletePropagationOrphan
)

// make makes objects, a line each.
func (w *fixture) make(lines string) {
	w.Helper()
	for text := range strings.Lines(lines) {
		if strings.TrimSpace(text) == "" {
			continue
		}
		l, err := readLine(text)
		if err != nil {
			w.Fatal(err)
		}
		var owners []metav1.OwnerReference
		for _, word := range l.owners {
			owners = append(owners, w.reference(word))
		}
		w.create(l.kind, l.name, owners, l.finalizers...)
	}
}

// reference is an owner as it is written in owners=(…).
func (w *fixture) reference(word string) metav1.OwnerReference {
	w.Helper()
	name, set := cutMarks(word)
	r := w.of(name).reference()
	set(&r)
	return r
}

// create makes one object with references as they are.
func (w *fixture) create(short, name string, owners []metav1.OwnerReference, finalizers ...string) {
	w.Helper()
	o, err := w.makeOne(w.Context(), short, name, owners, finalizers...)
	if err != nil {
		w.Fatal(err)
	}
	w.made[name] = o
}

// makeOne is create for who makes several at a time.
func (w *fixture) makeOne(ctx context.Context, short, name string, owners []metav1.OwnerReference,
	finalizers ...string) (object, error) {
	k, ok := w.kinds[short]
	if !ok {
		return object{}, fmt.Errorf("no kind %q", short)
	}
	manifest, err := k.manifest(name, owners, finalizers)
	if err != nil {
		return object{}, err
	}
	o := object{kind: k, name: name}
	if !k.cluster {
		o.namespace = w.namespace
	}
	made, err := w.at(o).Create(ctx, manifest, metav1.CreateOptions{})
	if err == nil {
		o.uid = made.GetUID()
	}
	return o, err
}

// delete deletes an object as kubectl would, with a policy; none leaves it to
// its kind's default.
func (w *fixture) delete(name string, policy metav1.DeletionPropagation) {
	w.Helper()
	options := metav1.DeleteOptions{}
	if policy != none {
		options.PropagationPolicy = &policy
	}
	w.deleteWith(name, options)
}

func (w *fixture) deleteWith(name string, options metav1.DeleteOptions) {
	w.Helper()
	o := w.of(name)
	options.Preconditions = &metav1.Preconditions{UID: &o.uid}
	if err := w.at(o).Delete(w.Context(), o.name, options); err != nil {
		w.Fatal(err)
	}
}

// patch changes an object by a JSON merge patch.
func (w *fixture) patch(name, change string) {
	w.Helper()
	o := w.of(name)
	if _, err := w.at(o).Patch(w.Context(), o.name, types.MergePatchType, []byte(change), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// own gives an object these owners and no others.
func (w *fixture) own(name string, owners ...string) {
	w.Helper()
	refs := []metav1.OwnerReference{}
	for _, word := range owners {
		refs = append(refs, w.reference(word))
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs}})
	if err != nil {
		w.Fatal(err)
	}
	w.patch(name, string(change))
}

// unfinalize takes all finalizers off an object, as whoever put them there does.
func (w *fixture) unfinalize(names ...string) {
	w.Helper()
	for _, name := range names {
		w.patch(name, `{"metadata":{"finalizers":null}}`)
	}
}

// numbered are n names with a common beginning.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}

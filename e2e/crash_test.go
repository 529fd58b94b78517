//go:build full

package e2e

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cascadeBroken deletes an owner of 500, half of which have dependents of their
// own, beside others that have a second owner and must stay.
func (w *fixture) cascadeBroken(policy metav1.DeletionPropagation, breakIt func(*fixture)) {
	w.Helper()
	const n = 500
	leaves, deeper, shared := numbered("leaf", n), numbered("deeper", n/10), numbered("shared", n/10)
	w.make(`
		cm boss
		cm staying
	`)
	w.make(dependents("cm", leaves, "boss!block"))
	w.make(dependents("cm", shared, "boss!block, staying!block"))
	for i, name := range deeper {
		w.make("cm " + name + " owners=(" + leaves[i] + "!block)")
	}
	w.settle()

	w.delete("boss", policy)
	w.until("the middle of the cascade", func(ctx context.Context) (bool, error) {
		done, err := w.done(ctx, leaves)
		return done >= n/5, err
	})
	breakIt(w)
	done, err := w.done(w.Context(), leaves)
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("%d of %d were done when it was broken", done, n)

	w.awaitGone("boss")
	if policy == orphan {
		w.mustStay(append(append(append(leaves, deeper...), shared...), "staying")...)
		if done, err := w.done(w.Context(), leaves); err != nil || done != n {
			w.Errorf("%d of %d are released, %v", done, n, err)
		}
	} else {
		w.awaitGone(append(leaves, deeper...)...)
		w.mustStay(append(shared, "staying")...)
	}
	for _, name := range shared {
		if have := w.owners(name); have != "staying!block" {
			w.Errorf("the owners of %s are (%s), want (staying!block)", name, have)
		}
	}
}

// done counts those of the objects that are gone, or have no owners any more.
func (w *fixture) done(ctx context.Context, names []string) (int, error) {
	list, err := w.at(w.of(names[0])).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	owned := map[string]bool{}
	for i := range list.Items {
		if len(list.Items[i].GetOwnerReferences()) > 0 {
			owned[list.Items[i].GetName()] = true
		}
	}
	done := 0
	for _, name := range names {
		if !owned[name] {
			done++
		}
	}
	return done, nil
}

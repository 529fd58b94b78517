package e2e

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deployed makes a Deployment whose two pods run, and returns the names of its
// ReplicaSet and of its pods.
func (w *fixture) deployed(name string) (sets, pods []string) {
	w.Helper()
	w.make("web " + name)
	w.until("the pods of "+name+" run", func(context.Context) (bool, error) {
		if sets = w.adopt("rs", w.ownedBy(name)); len(sets) != 1 {
			return false, nil
		}
		pods = w.adopt("po", w.ownedBy(sets[0]))
		return len(pods) == 2, nil
	})
	return sets, pods
}

// awaitForeground waits until the deletion of an object with the finalizer is known to wait for
// its dependents: the built-in collector is told so, and weir's own knows.
func (w *fixture) awaitForeground(name string) {
	w.Helper()
	if w.mode == replace {
		w.awaitFinalizers(name, finalizer)
		return
	}
	w.awaitFinalizers(name, metav1.FinalizerDeleteDependents)
}

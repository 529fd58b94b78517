package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drop deletes the fixture's namespace, and returns its uid.
func (w *fixture) drop() types.UID {
	w.Helper()
	ns, err := w.typed.CoreV1().Namespaces().Get(w.Context(), w.namespace, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.typed.CoreV1().Namespaces().Delete(w.Context(), w.namespace, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	return ns.UID
}

// awaitDropped waits until the fixture's namespace is gone, whatever has its name by then.
func (w *fixture) awaitDropped(uid types.UID) {
	w.Helper()
	w.until("the namespace is gone", func(ctx context.Context) (bool, error) {
		ns, err := w.typed.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && ns.UID != uid, err
	})
}

// awaitConditions waits until the namespace has conditions, as TYPE=STATUS REASON: MESSAGE; a
// message that ends in … may go on.
func (w *fixture) awaitConditions(want ...string) {
	w.Helper()
	var have []string
	missing := func(ctx context.Context) (string, error) {
		ns, err := w.typed.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		have = nil
		for _, c := range ns.Status.Conditions {
			have = append(have, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
		for _, x := range want {
			begin, goesOn := strings.CutSuffix(x, "…")
			if !slices.ContainsFunc(have, func(h string) bool { return h == x || goesOn && strings.HasPrefix(h, begin) }) {
				return x, nil
			}
		}
		return "", nil
	}
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("conditions of %s:\n%s", w.namespace, strings.Join(have, "\n"))
		}
	})
	w.until("the conditions are as wanted", func(ctx context.Context) (bool, error) {
		x, err := missing(ctx)
		return x == "" && err == nil, err
	})
}

// finalize leaves the fixture's namespace with these finalizers in its spec.
func (w *fixture) finalize(finalizers ...corev1.FinalizerName) {
	w.Helper()
	w.until("the namespace has other finalizers", func(ctx context.Context) (bool, error) {
		ns, err := w.typed.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		if err == nil {
			ns.Spec.Finalizers = finalizers
			_, err = w.typed.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{})
		}
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

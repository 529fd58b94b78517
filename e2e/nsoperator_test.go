//go:build full

package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// ofOperator is what an operator of namespaces has of its own in each of them: a finalizer, and a
// condition.
const ofOperator = "example.com/operator"

// TestOperatorOfNamespacesStopsNoDraining in replace mode: it has a finalizer of its own in
// spec.finalizers of every namespace, says in a condition what it did, and takes the finalizer off
// through the same subresource as a namespace controller, before Weir or after it.
func TestOperatorOfNamespacesStopsNoDraining(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir("--canary-time", "8s")
	w.awaitMetrics("it leads", func(m weir.Metrics) bool { return m.Has("weir_other_collector") })
	began, empty := time.Now(), w.beside()
	empty.awaitDropped(empty.drop())
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the first namespace took %s to go: nothing is to be waited for", took)
	}
	config := rest.CopyConfig(w.plane.Config)
	config.UserAgent = "namespace-operator"
	operator, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []bool{true, false, true} {
		ns := w.beside()
		ns.finalize(corev1.FinalizerKubernetes, ofOperator)
		ns.make(`
			cm conf
			cm held  finalizers=(example.com/hold)
		`)
		uid := ns.drop()
		ns.typed = operator
		ns.condition(ofOperator)
		if first {
			ns.finalize(corev1.FinalizerKubernetes)
		}
		ns.awaitGone("conf")
		ns.unfinalize("held")
		if !first {
			ns.until("weir has let the namespace go", func(ctx context.Context) (bool, error) {
				live, err := operator.CoreV1().Namespaces().Get(ctx, ns.namespace, metav1.GetOptions{})
				return err == nil && len(live.Spec.Finalizers) == 1, err
			})
			ns.finalize()
		}
		ns.awaitDropped(uid)
	}
}

// condition writes a condition into the status of the fixture's namespace.
func (w *fixture) condition(kind corev1.NamespaceConditionType) {
	w.Helper()
	w.until("the namespace has the condition", func(ctx context.Context) (bool, error) {
		ns, err := w.typed.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
		if err == nil {
			ns.Status.Conditions = append(ns.Status.Conditions, corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Cleaned", LastTransitionTime: metav1.Now()})
			_, err = w.typed.CoreV1().Namespaces().UpdateStatus(ctx, ns, metav1.UpdateOptions{})
		}
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

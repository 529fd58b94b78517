package e2e

import (
	"context"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// gate is an admission webhook that keeps the creation of a ConfigMap waiting.
type gate struct {
	w       *fixture
	reached chan struct{} // it is waiting
	open    func()        // it may pass
}

func (w *fixture) newGate() *gate {
	w.Helper()
	passes := make(chan struct{})
	g := &gate{w: w, reached: make(chan struct{}, 1), open: sync.OnceFunc(func() { close(passes) })}
	w.serveHook(&hook{kind: "cm", operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, timeout: 30, all: true,
		decide: func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			if r.Name == "late" && r.Operation == admissionv1.Create {
				g.reached <- struct{}{}
				<-passes
			}
			return nil
		}})
	w.Cleanup(g.open)
	return g
}

// create makes a ConfigMap that the gate keeps waiting. The error comes when it
// has passed.
func (g *gate) create() <-chan error {
	done := make(chan error, 1)
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	go func() {
		_, err := g.w.typed.CoreV1().ConfigMaps(g.w.namespace).Create(g.w.Context(), late, metav1.CreateOptions{})
		done <- err
	}()
	<-g.reached
	return done
}

// mustArrive lets what waits pass.
func (g *gate) mustArrive(done <-chan error) {
	g.w.Helper()
	g.open()
	if err := <-done; err != nil {
		g.w.Fatalf("the late object did not arrive: %v", err)
	}
}

// mustComeEmpty makes another namespace of the same name, and looks for what the
// one before may have left.
func (w *fixture) mustComeEmpty() {
	w.Helper()
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	if _, err := w.typed.CoreV1().Namespaces().Create(w.Context(), again, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.typed.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), "late", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.Errorf("the namespace came with an object of the one before: %v", err)
	}
}

// TestCreateThatArrivesWhenTheNamespaceIsGoneIsDeleted: the webhook takes longer
// than a namespace waits.
func TestCreateThatArrivesWhenTheNamespaceIsGoneIsDeleted(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	g := w.newGate()
	w.startWeir()
	done := g.create()
	w.awaitDropped(w.drop())
	g.mustArrive(done)
	w.until("it is deleted", func(ctx context.Context) (bool, error) {
		_, err := w.typed.CoreV1().ConfigMaps(w.namespace).Get(ctx, "late", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	w.mustComeEmpty()
}

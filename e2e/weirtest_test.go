package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/weirtest"
)

// TestOperatorsAreTestedWithACollector is what a test of an operator does with weirtest, against an
// API server without controllers, as envtest's is.
func TestOperatorsAreTestedWithACollector(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	began := time.Now()
	gc := weirtest.Start(t, w.plane.Config)
	t.Logf("started in %s", time.Since(began))
	maps, ctx := w.typed.CoreV1().ConfigMaps(w.namespace), t.Context()
	make := func(name string, finalizers []string, owners ...*corev1.ConfigMap) *corev1.ConfigMap {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
		for _, o := range owners {
			cm.OwnerReferences = append(cm.OwnerReferences, *metav1.NewControllerRef(o, corev1.SchemeGroupVersion.WithKind("ConfigMap")))
		}
		cm, err := maps.Create(ctx, cm, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm
	}
	gone := func(name string) {
		t.Helper()
		if _, err := maps.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}

	for i := range 20 {
		owner := make(fmt.Sprint("owner-", i), nil)
		child := make(fmt.Sprint("child-", i), nil, owner)
		make(fmt.Sprint("grandchild-", i), nil, child)
		if waiting := gc.DeleteAndWait(ctx, owner); len(waiting) > 0 {
			t.Errorf("waits for %v", waiting)
		}
		gone(owner.Name)
		gone(child.Name)
		gone(fmt.Sprint("grandchild-", i))
	}

	owner := make("owner", nil)
	stuck := make("stuck", []string{"example.com/operator"}, owner)
	if why := gc.Why(ctx, stuck); !strings.Contains(why, `owned by ConfigMap `+w.namespace+`/owner`) {
		t.Errorf("why is %q", why)
	}
	waiting := gc.DeleteAndWait(ctx, owner)
	if len(waiting) != 1 || waiting[0].UID != stuck.UID || !slices.Equal(waiting[0].Finalizers, stuck.Finalizers) {
		t.Errorf("what waits is %v", waiting)
	}
	w.made["stuck"] = object{kind: w.kinds["cm"], name: "stuck", uid: stuck.UID, namespace: w.namespace}
	w.unfinalize("stuck")
	if waiting := gc.WaitIdle(ctx); len(waiting) > 0 {
		t.Errorf("waits for %v", waiting)
	}
	gone("stuck")

	empty := w.beside()
	began = time.Now()
	empty.drop()
	gc.WaitIdle(ctx)
	t.Logf("an empty namespace went in %s", time.Since(began))

	inside := w.beside()
	inside.make("cm settings")
	uid := inside.drop()
	gc.WaitIdle(ctx)
	if left, err := w.typed.CoreV1().Namespaces().Get(ctx, inside.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace %s is there: %v, %v", uid, left, err)
	}
}

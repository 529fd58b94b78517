//go:build full

package plane_test

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestAddedAPIServerServesTheSameAndCanBeBehind: while its watch caches are held back, what is read
// from them is old, what is read consistently is not, and what it writes is written; and it goes
// and comes alone.
func TestAddedAPIServerServesTheSameAndCanBeBehind(t *testing.T) {
	p, err := plane.Start(t.Context(), plane.Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Stop() }() // which the end of the test's context does as well
	s, err := p.AddAPIServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	first := one.CoreV1().ConfigMaps("default")
	other, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	second := other.CoreV1().ConfigMaps("default")
	create := func(name string) {
		t.Helper()
		if _, err := first.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lists := func(o metav1.ListOptions, name string) bool {
		t.Helper()
		list, err := second.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].Name == name {
				return true
			}
		}
		return false
	}
	cached := metav1.ListOptions{ResourceVersion: "0"}
	create("before")
	awaitCached := func(name string) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return lists(cached, name), nil }); err != nil {
			t.Fatalf("wait for %s in the cache: %v", name, err)
		}
	}
	awaitCached("before")
	s.Lag.Hold()
	create("behind")
	if _, err := second.Get(t.Context(), "behind", metav1.GetOptions{}); err != nil {
		t.Errorf("a consistent read: %v", err)
	}
	began := time.Now()
	if !lists(metav1.ListOptions{}, "behind") {
		t.Error("a consistent list is as old as the cache")
	}
	t.Logf("a consistent list took %.1f s", time.Since(began).Seconds())
	if lists(cached, "behind") {
		t.Error("nothing was held back from the cache")
	}
	if err := second.Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	s.Lag.Release()
	awaitCached("behind")

	s.Kill()
	create("alone")
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitCached("alone")
}

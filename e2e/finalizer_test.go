package e2e

import (
	"context"
	"testing"
	"time"

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

func TestWhatWasThereBeforeGetsTheFinalizerAndLosesItAgain(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			cm one
			cm two finalizers=(example.com/hold)
			sec other
		`)
		name := w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  propagation: {default: Foreground}`)
		w.awaitFinalizers("one", finalizer)
		w.awaitFinalizers("two", "example.com/hold", finalizer)
		w.awaitCondition("DeletionPolicy", name, "BackFilled", metav1.ConditionTrue)
		policy, err := w.dynamic.Resource(policyResources["DeletionPolicy"]).Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		status, _ := policy.Object["status"].(map[string]any)
		// The namespace's own kube-root-ca.crt is one too.
		if status["matched"] != status["stamped"] || status["matched"] != int64(3) {
			t.Errorf("status %v, want 3 matched and stamped", status)
		}
		if err := w.dynamic.Resource(policyResources["DeletionPolicy"]).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.awaitFinalizers("one")
		w.awaitFinalizers("two", "example.com/hold")
		if o := w.get("one"); o.GetAnnotations()["weir.dev/armed-at"] != "" {
			t.Errorf("annotations %v", o.GetAnnotations())
		}
	})
}

// Labels bring an object under a policy, and out of it.
func TestUpdatesAddAndRemoveTheFinalizer(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
    objectSelector: {matchLabels: {keep: "yes"}}
  propagation: {default: Foreground}`)
		w.make("cm one")
		w.until("the update stamps", func(context.Context) (bool, error) {
			w.patch("one", `{"metadata":{"labels":{"keep":"no"}}}`)
			w.patch("one", `{"metadata":{"labels":{"keep":"yes"}}}`)
			return len(w.get("one").GetFinalizers()) == 1, nil
		})
		at, err := time.Parse(time.RFC3339Nano, w.get("one").GetAnnotations()["weir.dev/armed-at"])
		if err != nil || time.Since(at) > time.Minute {
			t.Errorf("stamped at %v, %v", at, err)
		}
		w.patch("one", `{"metadata":{"labels":{"keep":"no"}}}`)
		w.awaitFinalizers("one")
	})
}

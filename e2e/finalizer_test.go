package e2e

import (
	"context"
	"strings"
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

const workloads = `
  match:
    resources: [{apiGroups: [apps], resources: [deployments]}]
    HERE
  propagation: {default: %s}`

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

// kubectl asks for Background unless told otherwise: the policy's default applies,
// and the Deployment is there until its pods are gone.
func TestDefaultForegroundWaitsForPods(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(workloads, "%s", "Foreground"))
		w.awaitFinalizerAdded("web")
		_, pods := w.deployed("shop")
		w.awaitFinalizers("shop", finalizer)
		w.patch(pods[0], `{"metadata":{"finalizers":["example.com/hold"]}}`)
		w.mustKubectl("delete", "deployment", "shop", "--wait=false")
		w.awaitTerminating(pods[0])
		w.awaitGone(pods[1])
		w.awaitForeground("shop")
		w.mustBeThere("shop", pods[0])
		w.unfinalize(pods[0])
		w.awaitGone("shop", pods[0])
	})
}

func TestDefaultOrphanKeepsPods(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(workloads, "%s", "Orphan"))
		w.awaitFinalizerAdded("web")
		sets, pods := w.deployed("shop")
		w.mustKubectl("delete", "deployment", "shop")
		w.awaitGone("shop")
		w.mustStay(append(sets, pods...)...)
		w.awaitOwners(sets[0], "")
	})
}

// What an explicit request asks for is what happens, and nothing else.
func TestExplicitRequestsAreCarriedOut(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  propagation: {default: Orphan, allowed: [Orphan, Foreground]}`)
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  nothing
			sec nothing-child owners=(nothing)
			cm  back
			sec back-child owners=(back)
			cm  fore
			sec fore-child owners=(fore!block) finalizers=(example.com/hold)
			cm  orph
			sec orph-child owners=(orph)
		`)
		w.delete("nothing", none)
		w.delete("back", background)
		w.delete("fore", foreground)
		w.delete("orph", orphan)
		w.awaitGone("nothing", "back", "orph")
		w.awaitTerminating("fore-child")
		w.mustBeThere("fore")
		w.mustStay("nothing-child", "back-child", "orph-child")
		for _, name := range []string{"nothing-child", "back-child", "orph-child"} {
			w.awaitOwners(name, "")
		}
		w.unfinalize("fore-child")
		w.awaitGone("fore", "fore-child")
	})
}

func TestRequestsThatAreNotAllowedAreRefusedWithTheWayOn(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  propagation: {default: Foreground, allowed: [Foreground]}`)
		w.awaitFinalizerAdded("cm")
		w.make("cm owner")
		out, err := w.kubectl("delete", "configmap", "owner", "--cascade=orphan")
		if err == nil || !strings.Contains(out, `configmaps "owner" in namespace "`+w.namespace+`" may not be deleted with propagation policy Orphan: allowed is Foreground`) ||
			!strings.Contains(out, "To delete it as allowed: kubectl delete configmaps owner -n "+w.namespace+" --cascade=foreground") {
			t.Errorf("%v\n%s", err, out)
		}
		w.alive("owner")
		w.mustKubectl("delete", "configmap", "owner", "--cascade=foreground")
		w.awaitGone("owner")
	})
}

// A Job's dependents are orphaned by the API server when nothing is asked for.
func TestBareDeleteOfAJobRemovesWhatItOwns(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [batch], resources: [jobs]}]
    HERE
  propagation: {default: Background}`)
		w.awaitFinalizerAdded("job")
		w.make(`
			job bare
			sec bare-child owners=(bare)
			job asked
			sec asked-child owners=(asked)
			job kept
			sec kept-child owners=(kept)
		`)
		w.delete("bare", none)
		w.delete("asked", background)
		w.delete("kept", orphan)
		w.awaitGone("bare", "bare-child", "asked", "asked-child", "kept")
		w.awaitOwners("kept-child", "")
	})
}

func TestDependentsAreDecidedByKind(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  propagation:
    default: Foreground
    dependents: [{apiGroups: [""], resources: [secrets], action: Orphan}]`)
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  owner
			sec keys   owners=(owner!block)
			rc  worker owners=(owner!block)
			cm  other
			sec shared owners=(owner, other)
		`)
		w.delete("owner", background)
		w.awaitGone("owner", "worker")
		w.mustStay("keys", "shared", "other")
		w.awaitOwners("keys", "")
		w.awaitOwners("shared", "other")
	})
}

// The collector's own cascade meets dependents with the finalizer.
func TestCascadesGoThroughDependentsWithTheFinalizer(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  propagation: {default: Orphan}`)
		w.awaitFinalizerAdded("sec")
		w.make(`
			cm  owner
			sec middle owners=(owner)
			rc  leaf   owners=(middle)
		`)
		w.delete("owner", background)
		w.awaitGone("owner", "middle")
		w.mustStay("leaf")
		w.awaitOwners("leaf", "")
	})
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

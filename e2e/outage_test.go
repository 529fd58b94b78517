package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestOutagesLoseNothing kills the webhook and the controller while objects are
// made and deleted, beside the built-in collectors and instead of them.
func TestOutagesLoseNothing(t *testing.T) {
	t.Parallel()
	for m, controllers := range map[mode]plane.Controllers{replace: plane.None, companion: plane.Collectors} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			cluster, pair := newPaired(t, m, plane.Options{Controllers: controllers,
				ControllerManagerFlags: []string{"--kube-api-qps=2000", "--kube-api-burst=4000"}})
			for n, outage := range []struct {
				name string
				play func(*fixture)
			}{
				{"webhook under Ignore", (*fixture).outageUnderIgnore},
				{"policy that cannot be compiled", (*fixture).policyBreaksWhileObjectsTerminate},
				{"webhook under Fail", (*fixture).outageUnderFail},
				{"controller at each step", func(w *fixture) { w.controllerKilledAtEachStep(pair.url) }},
			} {
				if !slices.Contains(either(n), m) {
					continue
				}
				t.Run(outage.name, func(t *testing.T) {
					w := fixtureIn(t, cluster.cluster)
					w.hook = cluster.hook
					outage.play(w)
				})
			}
		})
	}
}

// killed takes a process away, and returns what brings it back: at the end of the
// test at the latest.
func (w *fixture) killed(p *weir.Process) (back func()) {
	w.Helper()
	p.Kill()
	isBack := false
	back = func() {
		w.Helper()
		if isBack {
			return
		}
		isBack = true
		if err := p.Restart(context.WithoutCancel(w.Context())); err != nil {
			w.Fatal(err)
		}
	}
	w.Cleanup(back)
	return back
}

// again kills a process, and starts it anew.
func (w *fixture) again(p *weir.Process) {
	w.Helper()
	p.Kill()
	if err := p.Restart(context.WithoutCancel(w.Context())); err != nil {
		w.Fatal(err)
	}
}

// What got the finalizer before an outage of the webhook is deleted as the policy says all
// the same; what comes meanwhile is let through, and caught up with.
func (w *fixture) outageUnderIgnore() {
	w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
	w.awaitFinalizerAdded("cm")
	w.make(`
		cm  before
		sec before-child owners=(before)
	`)
	w.awaitFinalizers("before", finalizer)
	back := w.killed(w.hook)
	w.make(`
		cm  during
		sec during-child owners=(during)
		cm  brief
	`)
	w.awaitFinalizers("during")
	w.delete("brief", none)
	w.awaitGone("brief")
	w.delete("before", none)
	w.awaitGone("before")
	w.mustStay("before-child", "during", "during-child")
	w.awaitOwners("before-child", "")
	back()
	w.awaitFinalizerAdded("cm")
	w.delete("during", none) // is armed, and comes again
	w.awaitGone("during")
	w.mustStay("during-child")
	w.awaitOwners("during-child", "")
}

// The API server says itself why it refuses. It asks about an object that carries the finalizer only
// where a policy may refuse its delete, as by allowed.
func (w *fixture) outageUnderFail() {
	w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan, allowed: [Orphan]")+"\n  failurePolicy: Fail")
	w.awaitFinalizerAdded("cm")
	w.make(`
		cm  one
		sec one-child owners=(one)
	`)
	back := w.killed(w.hook)
	w.mustRefuse([]string{`failed calling webhook "fail.delete.weir.dev"`}, "delete", "configmap", "one")
	w.mustKubectl("create", "configmap", "two") // only deletes fail
	w.alive("one", "one-child")
	back()
	w.awaitFinalizerAdded("cm")
	w.mustKubectl("delete", "configmap", "two")
	w.mustKubectl("delete", "configmap", "one")
	w.awaitGone("one")
	w.mustStay("one-child")
	w.awaitOwners("one-child", "")
}

// awaitLeft waits until at most so many of the objects are left.
func (w *fixture) awaitLeft(names []string, most int) {
	w.Helper()
	w.until(fmt.Sprintf("at most %d are left", most), func(ctx context.Context) (bool, error) {
		left, err := w.left(ctx, names)
		return len(left) <= most, err
	})
}

// mustBeReleased looks that Secrets are all there, that no owner and no finalizer is
// left on them, and that none is left on anything else of the namespace.
func (w *fixture) mustBeReleased(names []string) {
	w.Helper()
	w.mustStay(names[0])
	for _, short := range []string{"sec", "cm", "rs"} {
		list, err := w.dynamic.Resource(w.kinds[short].gvr()).Namespace(w.namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			w.Fatal(err)
		}
		found := map[string]bool{}
		for i := range list.Items {
			o := &list.Items[i]
			found[o.GetName()] = true
			if len(o.GetOwnerReferences())+len(o.GetFinalizers()) > 0 || o.GetDeletionTimestamp() != nil {
				w.Errorf("%s %s: owners (%s), finalizers %v, deleted %v", o.GetKind(), o.GetName(),
					ownersText(o.GetOwnerReferences()), o.GetFinalizers(), o.GetDeletionTimestamp())
			}
		}
		if short != "sec" {
			continue
		}
		for _, name := range names {
			if !found[name] {
				w.Errorf("%s is lost", name)
			}
		}
	}
}

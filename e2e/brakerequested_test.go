//go:build full

package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestBrakeOfAPolicyHoldsWhatWasAskedFor: owners are deleted by request, in both modes. One with
// few dependents goes at once. One with more than a policy lets go stays with all of them, also
// when the controller is killed, says so to whoever asks, and goes when a person decides, or alone
// when its dependents are released.
func TestBrakeOfAPolicyHoldsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	const held = "requested.configmaps"
	for m, o := range map[mode]plane.Options{replace: {}, companion: {Controllers: plane.Collectors, ControllerManagerFlags: lifted}} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			w, p := newPaired(t, m, o)
			w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  brake: {maxObjects: 10}`)
			w.awaitFinalizerAdded("cm")
			many, few, kept := numbered("many", 30), numbered("few", 10), numbered("kept", 11)
			w.make(`
				sec top
				cm boss  owners=(top)
				cm small
				cm keeper
			`)
			w.make(dependents("sec", many, "boss") + dependents("sec", few, "small") + dependents("sec", kept, "keeper"))
			w.settle() // what the controller has not seen yet is not counted

			w.mustSay(w.mustAsk("plan", "secret/top"), "Plan: 32 objects are deleted in 3 steps, 1 of them is held until a person decides, 30 are deleted only after that.")
			w.mustSay(w.mustAsk("plan", "configmap/small"), "Plan: 11 objects are deleted in 2 steps.")
			w.delete("top", background)
			w.delete("small", background)
			w.awaitGone(append(few, "top", "small")...)
			now := w.awaitHeld(held, 1)
			if cause, objects := status(now, "cause"), status(now, "objects"); cause != "map[resource:configmaps type:Requested]" || objects != "31" {
				t.Errorf("held because of %s: %s objects; want Requested, 31: %s", cause, objects, heldSays(now))
			}
			w.awaitEvent("boss", "DeletionHeld")
			w.awaitEventOn("HeldCollection", held, "CollectionHeld", "kubectl patch held "+held)
			w.mustSay(w.mustAsk("held", held), "Plan: 31 objects are deleted")
			w.mustSay(w.mustAsk("why", "configmap/boss"), "30 objects would also be deleted", "a person who decides")

			w.again(p.controller)
			w.delete("keeper", background)
			w.awaitHeld(held, 2)
			w.mustStay(many...)
			w.mustStay(kept...)

			w.delete("keeper", orphan)
			w.awaitGone("keeper")
			w.until("the other is not held any more", func(context.Context) (bool, error) {
				now = w.heldNow(held)
				return status(now, "held") == "1", nil
			})
			w.mustStay(many...)
			w.proceed(held, status(now, "digest"))
			w.awaitGone(append(many, "boss")...)
			w.awaitNotHeld(held)
			w.mustStay(kept...)

			// An explicit Foreground is held where Weir collects, and refused where another would
			// begin at once.
			w.make("cm last")
			more := numbered("more", 11)
			w.make(dependents("sec", more, "last"))
			w.settle()
			if m == companion { // the webhook counts by watches of its own
				w.awaitRefusal("delete", "configmap", "last", "--cascade=foreground")
			}
			last := w.of("last")
			err := w.at(last).Delete(t.Context(), "last", metav1.DeleteOptions{PropagationPolicy: new(foreground)})
			if m == companion {
				if err == nil || !strings.Contains(err.Error(), "would not wait for that") {
					t.Errorf("Foreground, beside another collector: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			now = w.awaitHeld(held, 1)
			w.mustStay(more...)
			w.proceed(held, status(now, "digest"))
			w.awaitGone(append(more, "last")...)
			w.awaitNotHeld(held)
		})
	}
}

//go:build full

package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestBrakeHoldsWhatIsGivenToAnOwnerThatIsBeingDeleted: a user deleted a widget, which a finalizer
// keeps. Then a controller writes it into 600 objects as their owner. No user asked for those to
// go: they are held when it ends, and go when a person decides. What was the widget's before goes
// at once.
func TestBrakeHoldsWhatIsGivenToAnOwnerThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w, crd := newHoldable(t)
	w.startWeir()
	owned := numbered("owned", 600)
	w.make("widget boss finalizers=(example.com/f)\ncm leaf owners=(boss)")
	w.makePairs("widget", numbered("widget", 600), owned)
	w.settle()
	boss := w.of("boss")
	w.delete("boss", background)
	w.settle()
	w.rewriteTo(owned, func(string) (string, types.UID) { return "boss", boss.uid })
	w.settle()
	if left := w.countLeft(owned); left != len(owned) {
		t.Fatalf("%d of %d are left, while their owner is there", left, len(owned))
	}
	w.patch("boss", `{"metadata":{"finalizers":null}}`)
	w.awaitGone("boss", "leaf")

	held := w.awaitCounted(crd.Name, owned)
	w.mustBeHeld(held, owned, "ReferenceEdited")
	w.proceed(crd.Name, status(held, "digest"))
	w.awaitGone(owned...)
	w.awaitNotHeld(crd.Name)
}

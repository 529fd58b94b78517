//go:build full

package e2e

import (
	"flag"
	"testing"
)

var instances = flag.Int("brake.instances", 600, "how many instances a definition has that is deleted")

// TestBrakeHoldsWhatADefinitionTakesWithIt: who uninstalls an operator whose chart has the definition
// among its templates deletes that, and all instances with it. What these own is held, and goes when
// a person decides.
func TestBrakeHoldsWhatADefinitionTakesWithIt(t *testing.T) {
	t.Parallel()
	w, crd := newHoldable(t)
	w.startWeir()
	owned := numbered("owned", *instances)
	w.makePairs("widget", numbered("widget", *instances), owned)
	w.make(`
		cm boss
		cm leaf owners=(boss)
	`)
	w.settle()
	w.beginUndefine(crd)
	held := w.awaitCounted(crd.Name, owned)
	w.mustBeHeld(held, owned, "DefinitionGone")
	w.delete("boss", background)
	w.awaitGone("leaf")
	w.proceed(crd.Name, status(held, "digest"))
	w.awaitGone(owned...)
	w.awaitNotHeld(crd.Name)
}

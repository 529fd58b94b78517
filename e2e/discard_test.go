package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatAPersonDiscardsStays: six objects have lost their owners while no collector ran, and are
// more than the limit. A user who may decide, and nothing else, has them kept: they lose their
// references, and are not deleted.
func TestWhatAPersonDiscardsStays(t *testing.T) {
	t.Parallel()
	w, crd := newHoldable(t)
	owned := numbered("owned", 6)
	w.makePairs("widget", numbered("widget", 6), owned)
	w.deleteAll("widget")
	w.startWeir("--brake-most=2")
	w.until("all are held", func(context.Context) (bool, error) {
		return status(w.heldNow(crd.Name), "held") == "6", nil
	})
	w.mustSay(w.mustAsk("held"), crd.Name+": 6 objects", "AwaitsDecision", "Discard")
	out := w.mustAsk("held", crd.Name, "--discard", "--yes")
	w.mustSay(out, "Plan: 6 objects are deleted")
	w.awaitNotHeld(crd.Name)
	for _, name := range owned {
		o, err := w.at(w.of(name)).Get(t.Context(), w.of(name).name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		why := fmt.Sprint(o.GetAnnotations())
		if len(o.GetOwnerReferences()) > 0 || !strings.Contains(why, "a person has decided so") {
			t.Errorf("%s has owners %v and annotations %s", name, o.GetOwnerReferences(), why)
		}
	}
	w.settle()
	w.alive(owned...)
}

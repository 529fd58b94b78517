//go:build full

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/weir"
)

// TestBrakeHoldsWhatADefinitionTakesWithIt uninstalls an operator: its definition goes, and with it 600 instances. What they own was asked for
// by no one. It is held, also by the weir that comes after one that is killed; all else goes on; a person decides, and it goes.
func TestBrakeHoldsWhatADefinitionTakesWithIt(t *testing.T) {
	t.Parallel()
	w, crd := newHoldable(t)
	w.startWeir()
	owned := w.ownedByWidgets()
	w.settle()
	w.undefine(crd)

	held := w.awaitCounted(crd.Name, owned)
	left := w.mustBeHeld(held, owned, "DefinitionGone")
	w.mustSay(w.mustAsk("plan", "held/"+crd.Name), fmt.Sprintf("Plan: %d objects are deleted", left))
	out := w.mustKubectl("get", "held")
	w.mustSay(out, crd.Name, "DefinitionGone", status(held, "digest"))
	t.Logf("\n%s", out)
	w.awaitEventOn("HeldCollection", crd.Name, "CollectionHeld", "kubectl patch held "+crd.Name)
	w.awaitMetrics("the objects that are held are counted", func(m weir.Metrics) bool { return m.Sum("weir_held_objects", "owners", crd.Name) == float64(left) })

	w.delete("boss", background) // a user asks for that
	w.awaitGone("leaf")

	w.weir.Kill()
	if err := w.weir.Restart(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	// A kind that is not served keeps what refers to it. It is back, without its instances: so the owners are known to be gone.
	crd.ResourceVersion, crd.UID = "", ""
	w.define(crd)
	w.until("the weir that was started says why it holds them", func(context.Context) (bool, error) {
		held = w.heldNow(crd.Name)
		return status(held, "conclusion") == "OwnerNotFound" && status(held, "held") == strconv.Itoa(left), nil
	})
	w.settle()
	if now := w.countLeft(owned); now != left {
		t.Errorf("%d are left after the restart, want %d", now, left)
	}

	// What comes after a person has looked is not part of the decision.
	w.make("widget later")
	w.patchOwner("later-owned", "later")
	w.proceed(crd.Name, status(held, "digest"))
	w.awaitGone(owned...)
	w.awaitHeldDigest(crd.Name, status(held, "digest"))
	w.mustStay("later-owned")
	w.own("later-owned")
	w.awaitNotHeld(crd.Name)
}

// TestBrakeHoldsWhatIsGivenToAnOwnerThatIsBeingDeleted: a user deleted a widget, which a finalizer keeps. Then a controller writes it into 600
// objects as their owner. No user asked for those to go: they are held when it ends, and go when a person decides. What was the widget's before goes at once.
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

// awaitHeldDigest waits until what is held is something else.
func (w *fixture) awaitHeldDigest(name, not string) {
	w.Helper()
	w.until("something else is held", func(context.Context) (bool, error) {
		digest := status(w.heldNow(name), "digest")
		return digest != "" && digest != not, nil
	})
}

// patchOwner makes a ConfigMap that is owned by a widget, which is then deleted while weir does not see it: it looks the owner up.
func (w *fixture) patchOwner(name, owner string) {
	w.Helper()
	uid := w.of(owner).uid
	w.make("cm " + name)
	w.delete(owner, background)
	w.awaitGone(owner)
	w.settle()
	change := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"Widget","name":%q,"uid":%q}]}}`, w.kinds["widget"].GroupVersion(), owner, uid)
	w.patch(name, change)
}

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObjectWithoutOtherOwnersIsDeletedWithItsOwner(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		rc boss
		rc other
		po sole     owners=(boss)
		po shared   owners=(boss, other)
		po unowned
	`)
	w.delete("boss", background)
	w.awaitGone("boss", "sole")
	w.awaitOwners("shared", "other")
	w.mustStay("other", "shared", "unowned")
	if uid := string(w.of("boss").uid); w.inGraph(uid) {
		t.Errorf("boss %s is still in the graph", uid)
	}
}

func TestObjectWhoseOwnerNeverExistedIsCollected(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.create("po", "stray", []metav1.OwnerReference{ownerThatNeverWas()})
	w.awaitGone("stray")
}

func TestOwnersAreFollowedThroughManyLevels(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		deploy a
		rc     b  owners=(a)
		cm     c  owners=(b)
		sec    d  owners=(c)
		po     e  owners=(d)
		cm     f
	`)
	w.delete("a", background)
	w.awaitGone("a", "b", "c", "d", "e")
	w.mustStay("f")
}

// TestOwnerThatIsOnlyTerminatingKeepsItsDependents: with background propagation
// it is the end of the owner that counts, not its beginning.
func TestOwnerThatIsOnlyTerminatingKeepsItsDependents(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss finalizers=(example.com/hold)
		cm leaf owners=(boss)
	`)
	w.delete("boss", background)
	w.mustStay("leaf")
	w.unfinalize("boss")
	w.awaitGone("boss", "leaf")
}

func TestOwnerThatIsRecreatedUnderItsNameOwnsNothingOfTheOldOne(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`cm boss`)
	old := w.of("boss").reference()
	w.delete("boss", background)
	w.awaitGone("boss")
	w.make(`cm boss`)
	w.create("cm", "heir", []metav1.OwnerReference{old})
	w.awaitGone("heir")
	w.mustStay("boss")
}

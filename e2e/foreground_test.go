package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestForegroundOwnerIsThereUntilWhatBlocksItIsGone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		rc boss
		po stuck   owners=(boss!block)  finalizers=(example.com/hold)
		po free    owners=(boss!block)
	`)
	w.delete("boss", foreground)
	w.awaitGone("free")
	w.awaitTerminating("stuck")
	w.mustBeThere("boss", "stuck")
	w.unfinalize("stuck")
	w.awaitGone("stuck", "boss")
}

func TestForegroundDeletionGoesFromTheLeavesUp(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm top
		cm left    owners=(top!block)
		cm right   owners=(top!block)
		cm stuck   owners=(left!block)  finalizers=(example.com/hold)
		cm free    owners=(right!block)
	`)
	w.delete("top", foreground)
	w.awaitGone("free", "right")
	w.awaitTerminating("stuck")
	w.mustBeThere("top", "left", "stuck")
	w.unfinalize("stuck")
	w.awaitGone("stuck", "left", "top")
}

func TestReferenceThatDoesNotBlockDoesNotHoldUpTheOwner(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		rc boss
		po unset    owners=(boss)           finalizers=(example.com/hold)
		po unblock  owners=(boss!unblock)   finalizers=(example.com/hold)
	`)
	w.delete("boss", foreground)
	w.awaitGone("boss")
	w.awaitTerminating("unset")
	w.awaitTerminating("unblock")
	w.unfinalize("unset", "unblock")
	w.awaitGone("unset", "unblock")
}

func TestSecondOwnerKeepsADependentAndLetsTheWaitingOwnerGo(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		rc leaving
		rc staying
		po shared  owners=(leaving!block, staying!block)
		po sole    owners=(leaving!block)
	`)
	w.delete("leaving", foreground)
	w.awaitGone("leaving", "sole")
	w.mustStay("staying", "shared")
	if have := w.owners("shared"); have != "staying!block" {
		t.Errorf("the owners of shared are (%s), want (staying!block)", have)
	}
}

func TestForegroundFinalizerGoesEachTimeAndForeignOnesStay(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`po pod finalizers=(example.com/hold)`)
	for range 2 {
		w.delete("pod", foreground)
		w.awaitFinalizers("pod", "example.com/hold")
	}
	w.unfinalize("pod")
	w.awaitGone("pod")
}

// TestDependentThatComesLateIsDeletedWithItsWaitingOwner: the owner waits
// already when the dependent is made.
func TestDependentThatComesLateIsDeletedWithItsWaitingOwner(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm stuck  owners=(boss!block)  finalizers=(example.com/hold)
	`)
	w.delete("boss", foreground)
	w.awaitTerminating("stuck")
	w.make(`cm late owners=(boss!block)`)
	w.awaitGone("late")
	w.mustBeThere("boss", "stuck")
	w.unfinalize("stuck")
	w.awaitGone("boss", "stuck")
}

func TestOwnerThatIsTerminatingCanStillBeToldToOrphan(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss  finalizers=(example.com/hold)
		cm leaf  owners=(boss!block)
	`)
	w.delete("boss", background)
	w.awaitTerminating("boss")
	w.deleteWith("boss", metav1.DeleteOptions{PropagationPolicy: new(orphan)})
	w.awaitOwners("leaf", "")
	w.awaitFinalizers("boss", "example.com/hold")
	w.unfinalize("boss")
	w.awaitGone("boss")
	w.mustStay("leaf")
}

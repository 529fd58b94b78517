package e2e

import (
	"maps"
	"slices"
	"testing"
)

func TestForegroundCyclesAreDeletedWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lines, closes string }{
		"of one": {"cm a", "a!block"},
		"of two": {`
			cm a
			cm b owners=(a!block)`, "b!block"},
		"of three": {`
			po a
			po b owners=(a!block)
			po c owners=(b!block)`, "c!block"},
		"of three kinds": {`
			po a
			rc b owners=(a!block)
			cm c owners=(b!block)`, "c!block"},
		"that does not block": {`
			cm a
			cm b owners=(a)`, "b"},
		"that blocks half way": {`
			cm a
			cm b owners=(a!block)
			cm c owners=(b)`, "c!block"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.make(c.lines)
			all := slices.Sorted(maps.Keys(w.made))
			w.own("a", c.closes)
			w.mustStay(all...)
			w.delete("a", foreground)
			w.awaitGone(all...)
		})
	}
}

// TestWhatHangsOnACycleStillBlocksIt: what is unblocked are the members of the
// cycle, not what hangs on it.
func TestWhatHangsOnACycleStillBlocksIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm a
		cm b      owners=(a!block)
		cm stuck  owners=(b!block)  finalizers=(example.com/hold)
	`)
	w.own("a", "b!block")
	w.delete("a", foreground)
	w.awaitTerminating("stuck")
	w.mustBeThere("b", "stuck")
	w.unfinalize("stuck")
	w.awaitGone("a", "b", "stuck")
}

func TestBackgroundCycleIsDeletedWhole(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm a
		cm b owners=(a)
	`)
	w.own("a", "b")
	w.delete("a", background)
	w.awaitGone("a", "b")
}

func TestObjectThatOwnsItselfIsKeptUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`cm self`)
	w.own("self", "self!block")
	w.mustStay("self")
	w.delete("self", foreground)
	w.awaitGone("self")
}

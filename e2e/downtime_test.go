package e2e

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWhatHappenedWhileWeirWasDownIsMadeGood starts weir on a cluster whose past
// it has not seen: there is nothing but lists.
func TestWhatHappenedWhileWeirWasDownIsMadeGood(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"with watch cache":    nil,
		"without watch cache": {"--watch-cache=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, plane.Options{APIServerFlags: flags})
			w.startWeir()
			w.make(`
				cm boss
				cm gone
				cm waiting
				cm orphaning
				cm of-gone        owners=(gone)
				cm of-both        owners=(boss, gone)
				cm of-waiting     owners=(waiting!block)
				cm of-orphaning   owners=(orphaning)
				cm under-that     owners=(of-orphaning)
			`)
			valid := numbered("valid", 10)
			w.make(dependents("cm", valid, "boss"))
			crowd := w.blockingEachOther(40)
			w.settle()
			w.weir.Kill()

			other := w.beside()
			other.make(`cm stranger owners=(boss)`)
			w.delete("gone", background)
			w.delete("waiting", foreground)
			w.delete("orphaning", orphan)
			for _, name := range crowd {
				w.delete(name, foreground)
			}
			w.make(`cm late owners=(orphaning)`)
			w.alive("of-gone", "of-waiting", "of-orphaning")

			if err := w.weir.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.awaitGone("stranger", "of-gone", "of-waiting", "waiting", "orphaning")
			w.awaitGone(crowd...)
			w.mustStay(append(valid, "boss", "of-both", "of-orphaning", "under-that", "late")...)
			for name, want := range map[string]string{"of-both": "boss", "of-orphaning": "", "late": "", "under-that": "of-orphaning"} {
				if have := w.owners(name); have != want {
					t.Errorf("the owners of %s are (%s), want (%s)", name, have, want)
				}
			}
			other.make(`cm stranger-again owners=(boss)`)
			w.awaitGone("stranger-again")
			w.mustStay(append(valid, "boss")...)
		})
	}
}

// blockingEachOther makes n objects that all own each other, and all block. Of 40 they are more
// references than the collector follows to tell who waits for whom.
func (w *fixture) blockingEachOther(n int) []string {
	w.Helper()
	all := numbered("crowd", n)
	for _, name := range all {
		w.make("cm " + name)
	}
	for i, name := range all {
		var owners []string
		for _, owner := range slices.Delete(slices.Clone(all), i, i+1) {
			owners = append(owners, owner+"!block")
		}
		w.own(name, owners...)
	}
	return all
}

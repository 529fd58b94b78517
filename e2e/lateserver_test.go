package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestAPIServersBehindEachOtherDeleteNothingThatIsOwned: what weir knows of some kinds comes from
// an API server whose watches are behind, and what it knows of the others from one whose are not.
func TestAPIServersBehindEachOtherDeleteNothingThatIsOwned(t *testing.T) {
	t.Parallel()
	c := newCluster(t, plane.Options{})
	second := newServers(c)
	c.startWeirSwitched(second, about("configmaps"))
	for name, f := range map[string]func(*fixture, *plane.Server){
		"a dependent was moved to another owner": (*fixture).movedUnseen,
		"a dependent was orphaned by hand":       (*fixture).releasedUnseen,
		"an owner was made":                      (*fixture).ownerUnseen,
		"dependents were made, orphan":           (*fixture).orphansUnseen,
		"dependents were made, foreground":       (*fixture).foregroundUnseen,
		"content was made in a namespace":        (*fixture).contentUnseen,
		"foreground was taken back":              (*fixture).takenBackUnseen,
	} {
		t.Run(name, func(t *testing.T) {
			w := fixtureIn(t, c.cluster)
			t.Cleanup(second.Lag.Release)
			f(w, second)
		})
	}
	c.mustNotRewind()
}

// The owner's end is seen, and not that its dependent has another owner by now.
func (w *fixture) movedUnseen(behind *plane.Server) {
	w.make(`
		rc boss
		rc heir
		cm moved owners=(boss!block)
		cm leaf  owners=(boss!block)
	`)
	w.settle()
	before := w.sum("weir_actions_total", "action", "delete", "result", "stale")
	behind.Lag.Hold()
	w.own("moved", "heir!block")
	w.delete("boss", background)
	w.awaitGone("leaf")
	w.awaitMetrics("it has tried to delete what was moved", func(m weir.Metrics) bool {
		return m.Sum("weir_actions_total", "action", "delete", "result", "stale") > before
	})
	w.alive("moved")
	behind.Lag.Release()
	w.mustStay("moved")
	w.awaitOwners("moved", "heir!block")
}

// The same, of one that has no owner any more.
func (w *fixture) releasedUnseen(behind *plane.Server) {
	w.make(`
		rc boss
		cm free owners=(boss!block)
		cm leaf owners=(boss!block)
	`)
	w.settle()
	behind.Lag.Hold()
	w.own("free")
	w.delete("boss", foreground)
	w.awaitGone("leaf")
	behind.Lag.Release()
	w.awaitGone("boss")
	w.mustStay("free")
}

// The dependent is seen, and not its owner, which a live read finds.
func (w *fixture) ownerUnseen(behind *plane.Server) {
	w.make("cm seen-before")
	w.settle()
	before := w.sum("weir_lookups_total", "answer", "present")
	behind.Lag.Hold()
	w.make(`
		cm  boss
		sec leaf owners=(boss)
	`)
	w.awaitMetrics("it has looked for the owner", func(m weir.Metrics) bool { return m.Sum("weir_lookups_total", "answer", "present") > before })
	w.alive("leaf")
	behind.Lag.Release()
	w.mustStay("leaf", "boss")
}

// The owner waits for the watch that has not shown a dependent, which is released when it has.
func (w *fixture) orphansUnseen(behind *plane.Server) {
	w.make(`
		rc  boss
		sec seen owners=(boss!block)
		cm  other
	`)
	w.settle()
	behind.Lag.Hold()
	w.make("cm unseen owners=(boss!block)")
	w.delete("boss", orphan)
	w.awaitMetrics("the watch counts as broken", func(m weir.Metrics) bool { return m.Sum("weir_graph_kinds", "state", "behind") > 0 })
	w.awaitOwners("seen", "")
	w.mustBeThere("boss")
	behind.Lag.Release()
	w.awaitGone("boss")
	w.mustStay("seen", "unseen")
	w.awaitOwners("unseen", "")
}

// The same of foreground deletion, which collects it, and not what another owner has by now.
func (w *fixture) foregroundUnseen(behind *plane.Server) {
	w.make(`
		rc  boss
		rc  heir
		sec seen owners=(boss!block)
		cm  other
	`)
	w.settle()
	behind.Lag.Hold()
	w.make(`
		cm unseen owners=(boss!block)
		cm moved  owners=(boss!block)
	`)
	w.own("moved", "heir")
	w.delete("boss", foreground)
	w.awaitGone("seen", "boss")
	behind.Lag.Release()
	w.awaitGone("unseen")
	w.mustStay("moved")
}

// The owner was told to orphan after all, and the watch still shows that it waits for what depends
// on it.
func (w *fixture) takenBackUnseen(behind *plane.Server) {
	w.make(`
		cm  boss
		sec held owners=(boss!block) finalizers=(example.com/hold)
	`)
	w.settle()
	w.delete("boss", foreground)
	w.awaitTerminating("held")
	w.settle()
	before := w.sum("weir_actions_total", "action", "delete", "result", "stale")
	behind.Lag.Hold()
	w.delete("boss", orphan)
	told := time.Now()
	w.until("what was read of the owner before is old", func(context.Context) (bool, error) { return time.Since(told) > time.Second/4, nil })
	w.make("sec late owners=(boss!block)")
	w.awaitMetrics("it has tried to delete what came late", func(m weir.Metrics) bool {
		return m.Sum("weir_actions_total", "action", "delete", "result", "stale") > before
	})
	w.alive("late")
	behind.Lag.Release()
	w.awaitOwners("late", "")
	w.mustStay("late")
	w.unfinalize("held")
	w.awaitGone("held", "boss")
}

// The namespace looks empty to every watch, and is not: the lists that prove it empty are no older
// than they are asked for.
func (w *fixture) contentUnseen(behind *plane.Server) {
	w.make("sec seen")
	w.settle()
	behind.Lag.Hold()
	w.make("cm held finalizers=(example.com/hold)")
	uid := w.drop()
	w.awaitTerminating("held")
	w.awaitConditions("WeirDraining=True Waiting: …")
	w.unfinalize("held")
	w.awaitDropped(uid) // by lists alone
	w.awaitGone("held", "seen")
	behind.Lag.Release()
}

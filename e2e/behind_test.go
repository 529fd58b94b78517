package e2e

import (
	"github.com/weir-dev/weir/e2e/weir"
)

// awaitLevel waits until weir has so many objects of a kind, and all kinds are listed.
func (w *fixture) awaitLevel(n float64, resource string) {
	w.Helper()
	w.awaitMetrics(resource+" are listed", func(m weir.Metrics) bool {
		return m.Sum("weir_graph_objects", "resource", resource) == n && m.Sum("weir_graph_kinds") == m.Sum("weir_graph_kinds", "state", "synced")
	})
}

// onlyOrphanStays deletes three owners, each with another propagation, and makes sure that all that
// is meant to go goes, but for the owner that waits with the orphan finalizer.
func (w *fixture) onlyOrphanStays() {
	w.Helper()
	w.make(`
		cm boss
		cm leaf       owners=(boss)
		cm foreground
		cm of-fg      owners=(foreground!block)
		cm orphan
		cm of-orphan  owners=(orphan)
	`)
	w.delete("boss", background)
	w.delete("foreground", foreground)
	w.delete("orphan", orphan)
	w.awaitGone("boss", "leaf", "of-fg", "foreground")
	w.awaitOwners("of-orphan", "")
	w.mustBeThere("orphan", "of-orphan")
}

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

// deleteEachWay deletes three owners, each with another propagation, and waits until all is done about
// their dependents.
func (w *fixture) deleteEachWay() {
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
	w.awaitGone("boss", "leaf", "of-fg")
	w.awaitOwners("of-orphan", "")
}

// onlyOrphanStays makes sure that of three owners, each deleted with another propagation, only the
// one with the orphan finalizer waits.
func (w *fixture) onlyOrphanStays() {
	w.Helper()
	w.deleteEachWay()
	w.awaitGone("foreground")
	w.mustBeThere("orphan", "of-orphan")
}

package e2e

import (
	"testing"
)

// configsPodsRest is an order.
const configsPodsRest = `
  HERE
  waves:
  - {name: configs, resources: [{apiGroups: [""], resources: [configmaps]}]}
  - {name: pods, resources: [{apiGroups: [""], resources: [pods]}]}
  - {name: rest, resources: [{apiGroups: [""], resources: [secrets]}]}`

// TestCompanionLeavesOtherNamespacesAlone: no policy selects it.
func TestCompanionLeavesOtherNamespacesAlone(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, companion)
	w.make("cm conf")
	w.awaitDropped(w.drop())
	for verb, n := range w.requests(weirUser) {
		if verb != "get" {
			t.Errorf("weir sent %d %s", n, verb)
		}
	}
}

package script

import "github.com/weir-dev/weir/controller/graph"

// Check verifies what must hold within a graph between events. Only tests of package graph are built
// with its Check, and those run all scripts, histories and simulations; elsewhere this does nothing.
func Check(g *graph.Graph) error {
	if checked, ok := any(g).(interface{ Check() error }); ok {
		return checked.Check()
	}
	return nil
}

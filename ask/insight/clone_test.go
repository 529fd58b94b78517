package insight

import (
	"maps"
	"slices"
)

// Clone returns an independent copy of w.
func (w *World) Clone() *World {
	return &World{
		Graph: w.Graph.Clone(), Namespace: w.Namespace, kinds: maps.Clone(w.kinds),
		meta: maps.Clone(w.meta), unread: maps.Clone(w.unread), read: maps.Clone(w.read),
		aggregated: maps.Clone(w.aggregated), missed: slices.Clone(w.missed),
		refused: maps.Clone(w.refused),
	}
}

package insight

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/internal/testkit/copied"
)

// Clone returns an independent copy of w.
func (w *World) Clone() *World {
	return &World{
		Graph: copied.Of(w.Graph), Namespace: w.Namespace, kinds: maps.Clone(w.kinds),
		meta: maps.Clone(w.meta), unread: maps.Clone(w.unread), read: maps.Clone(w.read),
		aggregated: maps.Clone(w.aggregated), missed: slices.Clone(w.missed),
		refused: maps.Clone(w.refused),
	}
}

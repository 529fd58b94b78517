package follow

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/kinds"
)

// RunKinds finds out which kinds there are, and from when all is closed does what Run does. Until
// then only the kinds are followed whose objects say what is served: an event for each write to the
// cluster would be for nothing. The graph is told of the others, as at a start of which no list has
// ended, so that it answers what is asked about their objects with "not known".
func (w *Watcher) RunKinds(ctx context.Context, all <-chan struct{}) {
	w.kindsOnly.Store(true)
	w.run(ctx, all)
}

// Follows tells whether the objects of a kind are followed, where it can be.
func (w *Watcher) Follows(kind schema.GroupResource) bool {
	return !w.kindsOnly.Load() || tellsKinds(kind)
}

// tellsKinds tells whether objects of a kind say which kinds are served.
func tellsKinds(kind schema.GroupResource) bool { return kind == crds || kind == kinds.APIServices }

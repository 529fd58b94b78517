package follow

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/kinds"
)

// RunKinds discovers which kinds there are, and does what Run does once all is closed. Until then
// it follows only the kinds whose objects say what is served, which spares an event for each write
// to the cluster. The graph takes the other kinds as not listed yet, and answers "not known" about
// their objects.
func (w *Watcher) RunKinds(ctx context.Context, all <-chan struct{}) {
	w.kindsOnly.Store(true)
	w.run(ctx, all)
}

// Follows reports whether the objects of a kind are followed.
func (w *Watcher) Follows(kind schema.GroupResource) bool {
	return !w.kindsOnly.Load() || tellsKinds(kind)
}

// tellsKinds reports whether objects of a kind say which kinds are served.
func tellsKinds(kind schema.GroupResource) bool {
	return kind == kinds.Definitions || kind == kinds.APIServices
}

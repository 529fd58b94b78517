package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
)

// firstListsTimeout is how long workers wait for the first lists, so that owners are known before
// their dependents are judged. Kinds that need longer do not hold up the others: decisions are safe
// without them, and only cost lookups.
const firstListsTimeout = 30 * time.Second

// Ready returns why the graph is not complete yet. It is nil once every kind has been listed, or
// has failed to be, which is reported elsewhere.
func (w *Watcher) Ready() error {
	return w.ready(func(schema.GroupResource) bool { return true })
}

// KindsReady returns why it is not known yet which kinds are served.
func (w *Watcher) KindsReady() error { return w.ready(tellsKinds) }

func (w *Watcher) ready(counts func(schema.GroupResource) bool) error {
	st := w.store.Stats()
	if len(st.Kinds) == 0 {
		return errors.New("waiting for discovery")
	}
	for _, k := range st.Kinds {
		if k.State == graph.Listing && counts(k.GroupResource()) {
			return fmt.Errorf("waiting for the first list of %s", k.GroupResource())
		}
	}
	return nil
}

// AwaitLists waits until every kind has been listed or has failed to be, for firstListsTimeout at
// most. It returns false if ctx ended first.
func (w *Watcher) AwaitLists(ctx context.Context) bool {
	for began := time.Now(); w.Ready() != nil && time.Since(began) < firstListsTimeout; {
		if await.Pause(ctx, 50*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

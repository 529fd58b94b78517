package collect

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
)

const (
	// lowPriorityLookups is how many owners a second are looked up whose answer does not decide
	// whether an object is kept. If 100,000 objects each name an owner that never was, all these
	// references are removed after 17 minutes.
	lowPriorityLookups = 100
	// lowPriorityWorkers bounds how many of these lookups are under way at once.
	lowPriorityWorkers = 4
)

// coOwners looks up owners of objects that another owner keeps: references to what never was are
// removed before they are the only ones left. Nothing waits for that, so it is paced, and has its
// own queue.
type coOwners struct {
	queue workqueue.TypedInterface[types.UID]
	pace  *rate.Limiter
	// look looks up one claim of an object, if that is still what is to be done.
	look func(ctx context.Context, uid types.UID)
}

func newCoOwners(look func(context.Context, types.UID)) *coOwners {
	return &coOwners{
		queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Name: "co-owners"}),
		pace:  rate.NewLimiter(lowPriorityLookups, lowPriorityLookups/10),
		look:  look,
	}
}

// run looks until ctx ends, and joins its goroutines.
func (c *coOwners) run(ctx context.Context) {
	var wg sync.WaitGroup
	await.Work(&wg, lowPriorityWorkers, c.queue, func(uid types.UID) {
		if c.pace.Wait(ctx) == nil {
			c.look(ctx, uid)
		}
	})
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
}

// lookCoOwner carries out a lookup of low priority, if it is still to be done. If not, the object
// has been queued again.
func (w *Workers) lookCoOwner(ctx context.Context, uid types.UID) {
	if a := w.Store.DecideLow(uid); a.Verb == graph.Lookup {
		w.look(ctx, a)
	}
}

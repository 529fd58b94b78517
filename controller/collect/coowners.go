package collect

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

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

// lookCoOwners looks up owners of objects that another owner keeps: references to what never was
// are removed before they are the only ones left. Nothing waits for that, so it is paced, and has a
// queue of its own. A lookup that is not to be done any more is left out: the object has been queued
// again.
func (w *Workers) lookCoOwners(ctx context.Context, wg *sync.WaitGroup) {
	pace := rate.NewLimiter(lowPriorityLookups, lowPriorityLookups/10)
	await.Work(wg, lowPriorityWorkers, w.coOwners, func(uid types.UID) {
		if pace.Wait(ctx) != nil {
			return
		}
		if a := w.Store.DecideLow(uid); a.Verb == graph.Lookup {
			w.look(ctx, a)
		}
	})
}

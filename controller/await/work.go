package await

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// Work calls work with each item of a queue, in n goroutines of a group, until the queue is shut
// down and empty. One goroutine at a time works on an item: if it is added meanwhile it comes
// again.
func Work[T comparable](group *sync.WaitGroup, n int, queue workqueue.TypedInterface[T], work func(T)) {
	for range n {
		group.Go(func() {
			for {
				item, closed := queue.Get()
				if closed {
					return
				}
				work(item)
				queue.Done(item)
			}
		})
	}
}

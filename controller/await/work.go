package await

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// Work takes what comes from a queue with n goroutines of a group, until the queue is shut down and
// empty. What a queue holds is worked on by one of them at a time: what is added meanwhile comes
// once more.
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

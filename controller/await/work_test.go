package await

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// What is added while it is worked on is worked on once more, and never by two at a time; what was
// added before the end is done.
func TestWorkIsDoneByNAtATimeAndEachItemByOne(t *testing.T) {
	for n, took := range map[int]time.Duration{1: 4 * time.Second, 2: 2 * time.Second, 9: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			queue := workqueue.NewTyped[string]()
			var mu sync.Mutex
			var done []string
			busy := map[string]bool{}
			var group sync.WaitGroup
			Work(&group, n, queue, func(item string) {
				mu.Lock()
				if busy[item] {
					t.Errorf("%d goroutines: two work on %q", n, item)
				}
				busy[item] = true
				if item == "a" && !slices.Contains(done, "a") {
					queue.Add("a") // a change that comes meanwhile
				}
				mu.Unlock()
				<-time.After(time.Second)
				mu.Lock()
				defer mu.Unlock()
				busy[item], done = false, append(done, item)
			})
			began := time.Now()
			for _, item := range []string{"a", "b", "c"} {
				queue.Add(item)
			}
			synctest.Wait()
			queue.ShutDown()
			group.Wait()
			slices.Sort(done)
			if want := []string{"a", "a", "b", "c"}; !slices.Equal(done, want) {
				t.Errorf("%d goroutines: done %q, want %q", n, done, want)
			}
			if got := time.Since(began); got != took {
				t.Errorf("%d goroutines took %s, want %s", n, got, took)
			}
		})
	}
}

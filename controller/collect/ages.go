package collect

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ages holds since when objects have had something to do, and which are being deleted.
type ages struct {
	mu   sync.Mutex
	of   map[types.UID]age
	peak int
}

type age struct {
	since  time.Time
	ending bool // it is being deleted
}

func (a *ages) begin(ending, rest []types.UID) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, uids := range [][]types.UID{ending, rest} {
		for _, uid := range uids {
			one, ok := a.of[uid]
			if !ok {
				one.since = now
			}
			one.ending = i == 0
			a.of[uid] = one
		}
	}
}

func (a *ages) end(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, uid)
	if a.peak = max(a.peak, len(a.of)+1); a.peak > 10_000 && len(a.of) == 0 {
		a.of, a.peak = map[types.UID]age{}, 0 // maps never shrink
	}
}

func (a *ages) get(uid types.UID) (since time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, ok := a.of[uid]
	return one.since, ok
}

func (a *ages) ending(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[uid].ending
}

// oldest returns for how long the object that has waited longest has had something to do.
func (a *ages) oldest() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var oldest time.Duration
	for _, one := range a.of {
		oldest = max(oldest, time.Since(one.since))
	}
	return oldest
}

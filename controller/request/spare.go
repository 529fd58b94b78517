package request

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// spare is a goroutine that waits for a place that nobody else wants.
type spare struct {
	share *share
	given chan struct{}
}

// acquireSpare waits, for as long as it takes, for a place that nobody else wants: half of those that the API server grants
// are left free, and a kind in trouble is left alone. Successful calls must be followed by release.
func (l *Limiter) acquireSpare(ctx context.Context, kind schema.GroupResource) error {
	l.mu.Lock()
	w := &spare{share: l.shareLocked(kind), given: make(chan struct{}, 1)}
	l.spares = append(l.spares, w)
	l.wakeLocked()
	l.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.spares, w); i >= 0 {
		l.spares = slices.Delete(l.spares, i, i+1)
	} else { // it was given at the same moment
		l.giveBackLocked(w.share, false)
		l.wakeLocked()
	}
	return ctx.Err()
}

// wakeSparesLocked gives away what is left over. It is called when others have been given what they wait for.
func (l *Limiter) wakeSparesLocked() {
	l.spares = slices.DeleteFunc(l.spares, func(w *spare) bool {
		if len(l.turns) > 0 || w.share.trouble != "" || float64(l.well) >= max(1, l.limit/2) || !l.roomLocked(w.share) {
			return false
		}
		l.takeLocked(w.share)
		w.given <- struct{}{}
		return true
	})
}

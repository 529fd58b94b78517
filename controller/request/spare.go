package request

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// spare is a goroutine that waits for a place that no other request wants.
type spare struct {
	share *share
	given chan struct{}
}

// acquireSpare waits, for as long as it takes, for a place that no other request wants: half of all
// places and half of the kind's are left free, or more; see allowance. A failing kind is asked one
// at a time whether it is well again, if no other request asks; one that is only slow has half of
// what it may have then. Who has waited long for either gets a *busyError. Successful calls must be
// followed by release.
func (l *Limiter) acquireSpare(ctx context.Context, kind schema.GroupResource) error {
	l.mu.Lock()
	w := &spare{share: l.shareLocked(kind), given: make(chan struct{}, 1)}
	l.spares = append(l.spares, w)
	l.sparing.Add(1)
	l.wakeLocked()
	l.mu.Unlock()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		select {
		case <-w.given:
			return nil
		case <-ctx.Done():
			return l.leaveSpares(w, ctx.Err())
		case <-enough.C:
		}
		l.mu.Lock()
		ill, err := w.share.failing != "", w.share.busy()
		l.mu.Unlock()
		if ill {
			return l.leaveSpares(w, err)
		}
		enough.Reset(patience)
	}
}

// leaveSpares ends the waiting, and returns why. A place that was given at the same moment is given
// back.
func (l *Limiter) leaveSpares(w *spare, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.spares, w); i >= 0 {
		l.spares = slices.Delete(l.spares, i, i+1)
		l.sparing.Add(-1)
		return err
	}
	l.endSpareLocked(w.share)
	l.giveBackLocked(w.share, false)
	l.wakeLocked()
	return err
}

// wakeSparesLocked gives away what is left over. It is called when others have been given what they
// wait for.
func (l *Limiter) wakeSparesLocked() {
	if len(l.spares) == 0 || slices.ContainsFunc(l.turns, func(s *share) bool { return s.failing == "" }) {
		return // what waits for a failing kind waits for that, and for no place
	}
	l.spares = slices.DeleteFunc(l.spares, func(w *spare) bool {
		if !l.leftLocked(w.share) {
			return false
		}
		l.takeLocked(w.share)
		l.beginSpareLocked(w.share)
		l.sparing.Add(-1)
		w.given <- struct{}{}
		return true
	})
}

// leftLocked tells whether there is a place for a spare. No other part may ever send a request
// about a failing kind, and without one it is never found out that it is well again.
func (l *Limiter) leftLocked(s *share) bool {
	if s.failing != "" {
		return float64(s.under+s.called) < l.mostIllLocked(s) && !s.wantedLocked() && l.roomLocked(s)
	}
	return float64(l.spared) < l.allowed.limit && float64(l.well) < l.allowed.most && float64(s.under) < max(1, s.most/2) && l.roomLocked(s)
}

// mostIllLocked is how many spares a failing kind may have under way. Where it is the API server
// that is slow, the allowance is down to one as well; where it is a webhook of that kind, more at
// once get more done.
func (l *Limiter) mostIllLocked(s *share) float64 {
	if s.failing != slowly {
		return 1
	}
	return max(1, min(s.most/2, l.allowed.limit))
}

// beginSpareLocked and endSpareLocked count what has a place that was left over, until it is late.
func (l *Limiter) beginSpareLocked(s *share) {
	s.spared++
	if s.failing == "" {
		l.spared++
	}
}

func (l *Limiter) endSpareLocked(s *share) {
	s.spared--
	if s.failing == "" {
		l.spared--
	}
}

// spareAnsweredLocked is told of each answer to a request in such a place, which it still has.
func (l *Limiter) spareAnsweredLocked(s *share, a answer) {
	if a.verdict == fine && !a.long {
		under := l.spared
		if s.failing == slowly {
			under = max(under, s.under)
		}
		l.allowed.answered(a.latency, float64(under) >= l.allowed.limit-1)
	}
	if !a.late {
		l.endSpareLocked(s)
	}
}

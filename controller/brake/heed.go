package brake

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// own is how long a hold of this process alone lasts. The leader writes a HeldCollection within
	// seconds, or does not hold it.
	own = time.Minute
	// missed is how long a HeldCollection has to be missing before its hold ends. A client that
	// deletes one decides nothing, and the leader creates it again within seconds, by two requests.
	missed = 15 * time.Second
)

// Heed has this process hold what the leader's HeldCollections say, until ctx ends, after Begin. It
// is for processes that do not keep HeldCollections. A hold of this process alone lasts until the
// leader has had time to hold it, too, because only the leader tells users.
func (b *Brake) Heed(ctx context.Context) {
	h := heeder{Brake: b, failing: rate.Sometimes{Interval: failureEvery}}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		h.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

type heeder struct {
	*Brake
	failing rate.Sometimes // logs a failure
	refused refusal
}

func (h *heeder) look(ctx context.Context) {
	h.mu.Lock()
	history := h.history
	h.mu.Unlock()
	items, err := h.list(ctx)
	if err != nil && ctx.Err() == nil {
		h.failing.Do(func() { h.Log.Error(err, "cannot read what is held: what was held before stays held") })
	}
	switch {
	case err == nil:
		h.heed(time.Now(), items)
	case !h.undefined(ctx, err) && !h.refused.by(err):
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsure = history != h.history
}

// heed takes over what HeldCollections say. One without a status was created by another client, and
// holds nothing.
func (b *Brake) heed(now time.Time, items []v1beta1.HeldCollection) {
	written := map[schema.GroupResource]time.Time{}
	for i := range items {
		if c, since := causeOf(&items[i]), items[i].Status.Since; since != nil && !c.requested {
			written[c.kind] = since.Time
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Tidy(now)
	for _, c := range b.ledger.Heed(now, written) {
		b.Log.Info(c.what, "name", c.owners.String())
	}
}

// change is a hold that began or ended when HeldCollections were read.
type change struct {
	owners schema.GroupResource
	what   string
}

// Heed holds the kinds of owners that are written, and ends holds that are not written any more, or
// were not in time.
func (l *Ledger) Heed(now time.Time, written map[schema.GroupResource]time.Time) (changes []change) {
	for c, since := range written {
		acc := l.kinds[c]
		if acc == nil || acc.held == nil {
			l.Hold(now, c, since, "its HeldCollection says so")
			acc = l.kinds[c]
			changes = append(changes, change{c, "held, as a HeldCollection says"})
		}
		acc.held.written, acc.held.missing = true, time.Time{}
	}
	for c, acc := range l.kinds {
		if acc.held == nil {
			continue
		}
		if _, still := written[c]; still || !acc.held.written && now.Sub(acc.held.since) < own {
			continue
		}
		if acc.held.written {
			if acc.held.missing.IsZero() {
				acc.held.missing = now
			}
			if now.Sub(acc.held.missing) < missed {
				continue
			}
			l.Ends(c)
			changes = append(changes, change{c, "no HeldCollection holds it any more"})
		} else { // nobody has decided anything, so what was let through still counts
			acc.held = nil
			changes = append(changes, change{c, "only this webhook held it, for a minute, and there is no HeldCollection: " +
				"the controller has counted less, for example because it was restarted. What the collector asks about may be " +
				"held again, for an hour at most; to end that sooner, restart the webhook"})
		}
	}
	return changes
}

package request

import "time"

// allowance is how many requests may be under way in places that no other request wants. The
// limiter's own bound does not tell: it rises only while it is reached. This one begins low, and
// rises by one for each round of answers that come as quickly as at their quickest; the first sign
// that the API server, or what it asks, has enough to do already is that they come later, long
// before it says 429. Then it is for these requests to make way, since no client waits for them.
type allowance struct {
	limit, most float64
	seen        float64       // answers since quick was learned again, up to usualOf
	usual       time.Duration // of the last usualOf answers or so: one among others says nothing, be it late or lucky
	quickest    time.Duration // the least of usual since quick was learned again; 0: not known yet
	learned     time.Time     // when that was
	cutAt       time.Time     // the last time the limit was cut: once per answer time
}

const (
	startAllowance = 8
	quickAnswer    = 3 // times the quickest is as quick
	slowAnswer     = 4
	// usualOf answers is what is usual. None counts for more than twice what is slow.
	usualOf = 16
	// relearnAfter is for how long what is quick holds. Then it is learned again, with no more
	// under way than at the beginning: the API server may have other things to do than it had, and
	// what is under way itself must not come to be taken for what there is.
	relearnAfter = 30 * time.Second
)

// newAllowance is half of the places at most: others find room at once.
func newAllowance(places float64) allowance {
	most := max(1, places/2)
	return allowance{limit: min(startAllowance, most), most: most}
}

// answered is told of each good answer; full: no more were allowed to be under way.
func (b *allowance) answered(latency time.Duration, full bool) {
	if now := time.Now(); now.Sub(b.learned) > relearnAfter {
		b.learned, b.seen, b.usual, b.quickest = now, -b.limit, 0, 0 // not from what is under way now
		b.limit = min(b.limit, startAllowance)
	}
	if b.quickest > 0 {
		latency = min(latency, 2*slowAnswer*b.quickest)
	}
	if b.seen = min(usualOf, b.seen+1); b.seen <= 0 {
		return
	}
	b.usual += time.Duration(float64(latency-b.usual) / b.seen)
	if b.seen < usualOf {
		return // nothing is usual yet
	}
	if b.quickest == 0 || b.usual < b.quickest {
		b.quickest = b.usual
	}
	switch {
	case b.usual > slowAnswer*b.quickest:
		b.cut(latency, 0.75)
	case full && b.usual <= quickAnswer*b.quickest:
		b.limit = min(b.most, b.limit+1/b.limit)
	}
}

// throttled is told of each 429 of the API server, whoever got it.
func (b *allowance) throttled(latency time.Duration) { b.cut(latency, 0.5) }

func (b *allowance) cut(latency time.Duration, to float64) {
	if now := time.Now(); now.Sub(b.cutAt) > latency {
		b.cutAt = now
		b.limit = max(1, b.limit*to)
	}
}

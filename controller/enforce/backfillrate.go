package enforce

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/finalizers"
)

// headway is how fast a pass of back-fill is.
type headway struct {
	aSecond float64       // objects changed in a second, recently
	left    time.Duration // about; 0: not known
	still   bool          // objects wait, and none has been changed recently
	failing string        // why, or what is not done meanwhile; empty: nothing fails
}

// String is empty where nothing is known.
func (h headway) String() string {
	var said []string
	switch {
	case h.still:
		said = append(said, "stands still")
	case h.aSecond < 1:
	case h.left < time.Second:
		said = append(said, fmt.Sprintf("%.0f a second", h.aSecond))
	default:
		said = append(said, fmt.Sprintf("%.0f a second, about %s left", h.aSecond, h.left.Round(time.Second)))
	}
	if h.failing != "" {
		said = append(said, h.failing)
	}
	return strings.Join(said, "; ")
}

const (
	// showEvery is after how many changes progress is told.
	showEvery = 100
	// showAfter is after what time it is told, be there a change or not, and what "recently" is at
	// least.
	showAfter = 10 * time.Second
)

// mark is how far a pass was at a time.
type mark struct {
	at             time.Time
	changed, ended int64
}

func (p *pass) markLocked() mark {
	return mark{time.Now(), p.changed[finalizers.Done], p.looked - p.pending}
}

// show tells of the pass from time to time until stop is called.
func (p *pass) show(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var shows sync.WaitGroup
	shows.Go(func() {
		every := time.NewTicker(showAfter)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			p.mu.Lock()
			// One that has only looked so far says nothing of what holds already.
			if speed := p.headwayLocked(); speed.still || p.changed[finalizers.Done] >= showEvery {
				p.publish(progress{tallies: p.totalsLocked(), speed: speed})
			}
			p.since, p.next = p.next, p.markLocked()
			p.mu.Unlock()
		}
	})
	return func() { cancel(); shows.Wait() }
}

// reckon says how far a pass has to go: all objects of the kinds that are to be looked at. What
// selectors leave of a kind is not known before it is listed, and then nor is what is left.
func (p *pass) reckon(kinds []graph.KindStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = true
	p.since = p.markLocked()
	p.next = p.since
	for _, k := range kinds {
		kind := k.GroupResource()
		if some, _ := p.set.AddsFinalizer(kind); !some || !concerned(k) {
			continue
		}
		selector, _ := p.set.FinalizerSelector(kind)
		var all graph.Counted
		var complete bool
		p.store.Read(func(g *graph.Graph) { all, complete = g.Instances(kind) })
		p.ahead[kind] = int64(all.Count)
		p.known = p.known && complete && selector == "" && slices.Equal(p.namespaces(k), everywhere)
	}
}

// skip is of a kind that need not be looked at.
func (p *pass) skip(kind schema.GroupResource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ahead, kind)
}

// headwayLocked is that of the pass recently.
func (p *pass) headwayLocked() headway {
	now := p.markLocked()
	took := now.at.Sub(p.since.at)
	if took < time.Second {
		return headway{}
	}
	h := headway{aSecond: float64(now.changed-p.since.changed) / took.Seconds(), failing: p.failingLocked()}
	h.still = took >= showAfter && now.changed == p.since.changed && p.pending > 0
	all := int64(0)
	for _, n := range p.ahead {
		all += n
	}
	if of := now.ended - p.since.ended; p.known && of > 0 && now.ended < all {
		h.left = time.Duration(float64(took) * float64(all-now.ended) / float64(of))
	}
	return h
}

// failingLocked is what happens to requests about a kind whose objects wait, the first by name.
func (p *pass) failingLocked() string {
	var said []string
	for kind, n := range p.waiting {
		if failing := p.requests.Limiter.Failing(kind); n > 0 && failing != "" {
			said = append(said, failing)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return slices.Min(said)
}

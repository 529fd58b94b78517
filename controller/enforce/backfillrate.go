package enforce

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/finalizers"
)

// headway is how fast a pass of back-fill is.
type headway struct {
	aSecond float64       // objects changed in a second
	left    time.Duration // about; 0: not known
}

// String is empty where nothing is known.
func (h headway) String() string {
	switch {
	case h.aSecond < 1:
		return ""
	case h.left < time.Second:
		return fmt.Sprintf("%.0f a second", h.aSecond)
	}
	return fmt.Sprintf("%.0f a second, about %s left", h.aSecond, h.left.Round(time.Second))
}

// reckon says how far a pass has to go: all objects of the kinds that are to be looked at. What selectors leave of a kind is not
// known before it is listed, and then nor is what is left.
func (p *pass) reckon(kinds []graph.KindStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began, p.known = time.Now(), true
	for _, k := range kinds {
		kind := k.GroupResource()
		if some, _ := p.set.AddsFinalizer(kind); !some || !k.Served || !k.Listable {
			continue
		}
		selector, _ := p.set.FinalizerSelector(kind)
		var all graph.Fallen
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

// headwayLocked is that of the pass until now.
func (p *pass) headwayLocked() headway {
	took := time.Since(p.began)
	if took < time.Second {
		return headway{}
	}
	h := headway{aSecond: float64(p.changed[finalizers.Done]) / took.Seconds()}
	all, ended := int64(0), p.looked-p.pending
	for _, n := range p.ahead {
		all += n
	}
	if p.known && ended > 0 && ended < all {
		h.left = time.Duration(float64(took) * float64(all-ended) / float64(ended))
	}
	return h
}

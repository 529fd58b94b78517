package enforce

import "k8s.io/apimachinery/pkg/runtime/schema"

// tally is how many objects a policy's propagation holds for, and how many of them carry what it
// asks for.
type tally struct{ matched, carrying int64 }

func (t tally) plus(o tally) tally { return tally{t.matched + o.matched, t.carrying + o.carrying} }

func (p *pass) begin(kind schema.GroupResource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tallies[kind] = map[string]tally{}
}

// listed is what one list has brought. It counts for nothing once the list has begun again, because
// each object comes again then.
type listed struct {
	tallies map[string]tally // by policy
	void    bool
}

// forget takes back what a list has brought, and returns the list that begins.
func (p *pass) forget(kind schema.GroupResource, of *listed) *listed {
	p.mu.Lock()
	defer p.mu.Unlock()
	for by, t := range of.tallies {
		p.tallies[kind][by] = p.tallies[kind][by].plus(tally{-t.matched, -t.carrying})
	}
	of.void = true
	return &listed{}
}

func (p *pass) count(kind schema.GroupResource, by string, t tally, of *listed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of.void {
		return
	}
	if of.tallies == nil {
		of.tallies = map[string]tally{}
	}
	of.tallies[by] = of.tallies[by].plus(t)
	p.tallies[kind][by] = p.tallies[kind][by].plus(t)
}

// totalsLocked are the tallies of policies, of all kinds.
func (p *pass) totalsLocked() map[string]tally {
	out := map[string]tally{}
	for _, kind := range p.tallies {
		for by, t := range kind {
			out[by] = out[by].plus(t)
		}
	}
	return out
}

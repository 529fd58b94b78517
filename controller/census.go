package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/stamps"
)

// censusEvery is how often objects are counted though no policy has changed. It changes nothing that Weir does.
const censusEvery = 30 * time.Minute

// census counts what policies are about, for their status, and finds conditions that fail before a request does. One kind
// after the other is listed, and only where the graph, which has no labels, cannot tell.
type census struct {
	store    *store
	lister   *stamps.Lister
	policies *live.State
	log      logr.Logger

	mu      sync.Mutex
	counted map[policies.PolicyKey]counted
	of      *policies.Set // of which that is
	told    chan struct{} // closed and replaced when the two above change
}

// counted is what a policy is about: how many objects, and about how many its conditions fail, one of which last.
type counted struct {
	matched, failed int64
	last            string
	// unknown: not all could be counted.
	unknown bool
}

func newCensus(s *store, lister *stamps.Lister, p *live.State, log logr.Logger) *census {
	return &census{store: s, lister: lister, policies: p, log: log, told: make(chan struct{})}
}

// now is what was last counted, if it is of these policies, and a channel that is closed when that changes.
func (c *census) now(set *policies.Set) (map[policies.PolicyKey]counted, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != set {
		return nil, c.told
	}
	return c.counted, c.told
}

// run counts until ctx ends.
func (c *census) run(ctx context.Context) {
	for {
		changed := c.policies.Changed()
		set := c.policies.Set()
		found := c.count(ctx, set)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.counted, c.of = found, set
		close(c.told)
		c.told = make(chan struct{})
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(censusEvery):
		}
	}
}

// count looks at each kind once.
func (c *census) count(ctx context.Context, set *policies.Set) map[policies.PolicyKey]counted {
	out := map[policies.PolicyKey]counted{}
	add := func(keys []policies.PolicyKey, one counted) {
		for _, k := range keys {
			have := out[k]
			have.matched += one.matched
			have.failed += one.failed
			have.unknown = have.unknown || one.unknown
			if one.last != "" {
				have.last = one.last
			}
			out[k] = have
		}
	}
	for _, s := range set.Statuses() {
		if s.Ready {
			out[s.Policy] = counted{} // about nothing, as far as is known
		}
	}
	for _, k := range c.store.stats().Kinds {
		if !k.Served || !k.Listable || ctx.Err() != nil {
			continue
		}
		how := set.CensusOf(k.GroupResource())
		if len(how.All) > 0 {
			var all graph.Fallen
			var complete bool
			c.store.read(func(g *graph.Graph) { all, complete = g.Instances(k.GroupResource()) })
			add(how.All, counted{matched: int64(all.Count), unknown: !complete})
		}
		if len(how.Some) == 0 {
			continue
		}
		kind, gvr := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}, k.GroupResource().WithVersion(k.Version)
		selector := ""
		if how.Selector != nil {
			selector = metav1.FormatLabelSelector(how.Selector)
		}
		found := map[policies.PolicyKey]counted{}
		err := c.lister.EachSelected(ctx, gvr, selector, how.Whole, func() { clear(found) }, func(object map[string]any, m *metav1.ObjectMeta) error {
			c.look(set, policies.Stored(kind, gvr, object, c.policies.Namespace(m.Namespace)), m, found)
			return ctx.Err()
		})
		for key, one := range found {
			add([]policies.PolicyKey{key}, one)
		}
		if err != nil && ctx.Err() == nil {
			c.log.V(1).Info("cannot count what policies are about", "kind", k.GroupResource().String(), "err", err.Error())
			add(how.Some, counted{unknown: true})
		}
	}
	return out
}

// look counts one object.
func (c *census) look(set *policies.Set, q policies.Question, m *metav1.ObjectMeta, found map[policies.PolicyKey]counted) {
	if m.DeletionTimestamp != nil {
		return // nobody is judged for it any more
	}
	about, errs := set.About(q)
	for _, key := range about {
		one := found[key]
		one.matched++
		found[key] = one
	}
	for _, e := range errs {
		one := found[e.Policy]
		one.failed++
		one.last = fmt.Sprintf("%s, at %s %s", e.Err, q.Resource.GroupResource(), nameIn(m))
		found[e.Policy] = one
	}
}

func nameIn(m *metav1.ObjectMeta) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

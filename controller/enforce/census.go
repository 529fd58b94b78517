package enforce

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
)

// censusEvery is how often objects are counted though no policy has changed. It changes nothing
// that Weir does.
const censusEvery = 30 * time.Minute

// census counts what policies are about, for their status, and finds conditions that fail before a
// request does. One kind after the other is listed, and only where the graph, which has no labels,
// cannot tell.
type census struct {
	store    *follow.Store
	lister   *finalizers.Lister
	policies *live.State
	log      logr.Logger

	mu      sync.Mutex
	counted map[policies.PolicyKey]counted
	of      *policies.Set // of which that is
	told    await.Change  // when the two above change
}

// counted is what a policy is about: how many objects, and about how many its conditions fail, one
// of which last.
type counted struct {
	matched, failed int64
	last            string
	// unknown: not all could be counted.
	unknown bool
}

func newCensus(s *follow.Store, lister *finalizers.Lister, p *live.State, log logr.Logger) *census {
	return &census{store: s, lister: lister, policies: p, log: log}
}

// now is what was last counted, if it is of these policies, and a channel that is closed when that
// changes.
func (c *census) now(set *policies.Set) (map[policies.PolicyKey]counted, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != set {
		return nil, c.told.Next()
	}
	return c.counted, c.told.Next()
}

// run counts until ctx ends.
func (c *census) run(ctx context.Context) {
	var last *censusResult
	for {
		changed := c.policies.Changed()
		found := c.count(ctx, c.policies.Set(), last)
		if ctx.Err() != nil {
			return
		}
		last = found
		c.mu.Lock()
		c.counted, c.of = found.totals(), found.set
		c.told.Notify()
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(censusEvery):
			last = nil
		}
	}
}

// censusResult is what a census has found.
type censusResult struct {
	set    *policies.Set
	listed map[schema.GroupResource]policyCounts // of the kinds that had to be listed
	other  []policyCounts                        // what the graph told, and kinds that could not be listed
}

type policyCounts map[policies.PolicyKey]counted

func (t policyCounts) add(key policies.PolicyKey, one counted) {
	have := t[key]
	have.matched += one.matched
	have.failed += one.failed
	have.unknown = have.unknown || one.unknown
	if one.last != "" {
		have.last = one.last
	}
	t[key] = have
}

// totals are those of each policy.
func (r *censusResult) totals() policyCounts {
	out := policyCounts{}
	for _, s := range r.set.Statuses() {
		if s.Ready {
			out[s.Policy] = counted{} // about nothing, as far as is known
		}
	}
	all := slices.Clone(r.other)
	for _, kind := range slices.SortedFunc(maps.Keys(r.listed), func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }) {
		all = append(all, r.listed[kind])
	}
	for _, of := range all {
		for key, one := range of {
			out.add(key, one)
		}
	}
	return out
}

// count looks at each kind once, but for kinds about which the policies are those of the last
// census.
func (c *census) count(ctx context.Context, set *policies.Set, last *censusResult) *censusResult {
	out := &censusResult{set: set, listed: map[schema.GroupResource]policyCounts{}}
	for _, k := range c.store.Stats().Kinds {
		if !concerned(k) || ctx.Err() != nil {
			continue
		}
		how := set.CensusOf(k.GroupResource())
		if len(how.All) > 0 {
			var all graph.Counted
			var complete bool
			c.store.Read(func(g *graph.Graph) { all, complete = g.Instances(k.GroupResource()) })
			known := policyCounts{}
			for _, key := range how.All {
				known.add(key, counted{matched: int64(all.Count), unknown: !complete})
			}
			out.other = append(out.other, known)
		}
		switch {
		case len(how.Some) == 0:
		case last != nil && last.listed[k.GroupResource()] != nil && set.SameCensus(k.GroupResource(), last.set):
			out.listed[k.GroupResource()] = last.listed[k.GroupResource()]
		default:
			out.list(ctx, c, k, how)
		}
	}
	return out
}

// list counts a kind by asking about each object.
func (r *censusResult) list(ctx context.Context, c *census, k graph.KindStats, how policies.Census) {
	kind, gvr := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}, k.GroupResource().WithVersion(k.Version)
	selector := ""
	if how.Selector != nil {
		selector = metav1.FormatLabelSelector(how.Selector)
	}
	found := policyCounts{}
	err := c.lister.EachOf(ctx, gvr, metav1.NamespaceAll, selector, false, func() { clear(found) },
		func(object map[string]any, m *metav1.ObjectMeta) error {
			judgeObject(r.set, policies.Stored(kind, gvr, object, c.policies.Namespace(m.Namespace)), m, found)
			return ctx.Err()
		})
	if err == nil {
		r.listed[k.GroupResource()] = found
		return
	}
	c.log.V(1).Info("cannot count what policies are about", "kind", k.GroupResource().String(), "err", err.Error())
	for _, key := range how.Some {
		found.add(key, counted{unknown: true})
	}
	r.other = append(r.other, found) // is listed again the next time
}

// judgeObject counts one object.
func judgeObject(set *policies.Set, q policies.Question, m *metav1.ObjectMeta, found policyCounts) {
	if m.DeletionTimestamp != nil {
		return // no request is judged for it any more
	}
	about, errs := set.About(q)
	for _, key := range about {
		found.add(key, counted{matched: 1})
	}
	for _, e := range errs {
		found.add(e.Policy, counted{failed: 1, last: fmt.Sprintf("%s, at %s %s", e.Err, q.Resource.GroupResource(), nameIn(m))})
	}
}

func nameIn(m *metav1.ObjectMeta) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

package enforce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

const (
	// backFillEvery looks again at kinds of which an object has changed: it may have come while the
	// webhook was away. The watches tell which these are.
	backFillEvery = 5 * time.Minute
	// backFillAll looks again at all of them, should a watch not have told.
	backFillAll = time.Hour
	// backFillRetry looks again at kinds of which something has failed, and at no others. Where
	// nothing has failed but objects that cannot carry the finalizer, twice as late each time,
	// until it is backFillEvery: users can make such objects, and they stay so.
	backFillRetry = 10 * time.Second
	// relabelledRest is how far apart passes begin that labels of namespaces bring about: each
	// looks at all kinds, and users can change labels all the time.
	relabelledRest = 10 * time.Second
)

// backFill brings the finalizers of what exists in line with the policies: what the webhook does
// for objects that come and change. It keeps nothing: a pass that is cut short is begun again, and
// finds what it did done.
type backFill struct {
	store    *follow.Store
	lister   *finalizers.Lister
	writer   *finalizers.Writer
	requests *request.Client
	policies *live.State
	pace     *rate.Limiter // a cap; what the API server and everything else that is done leave over decides below it
	metrics  *metrics
	log      logr.Logger

	mu   sync.Mutex
	now  progress
	told await.Change // when that changes
}

// newBackFill adds the finalizer to at most qps objects a second; 0: as many as there is room for.
func newBackFill(s *follow.Store, lister *finalizers.Lister, writer *finalizers.Writer, r *request.Client, p *live.State, qps float64, m *metrics, log logr.Logger) *backFill {
	pace := rate.NewLimiter(rate.Inf, 1)
	if qps > 0 {
		pace = rate.NewLimiter(rate.Limit(qps), max(1, int(qps)))
	}
	return &backFill{store: s, lister: lister, writer: writer, requests: r, policies: p, metrics: m, log: log,
		pace: pace}
}

// progress is how far the policies have been carried out on what exists.
type progress struct {
	tallies map[string]tally // by policy, as far as is known
	done    bool             // a pass over the present policies is complete
	speed   headway          // of one that is under way
}

// progress tells of it, and closes the channel when it changes.
func (b *backFill) progress() (progress, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now
	now.tallies = maps.Clone(now.tallies)
	return now, b.told.Next()
}

func (b *backFill) publish(now progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
	b.told.Notify()
}

// run goes on until ctx ends. A change of policies ends a pass, which would only undo what is now
// wanted.
func (b *backFill) run(ctx context.Context) {
	var last *pass // that came to its end; nil: there is none, or all may be different now
	all, looked := time.Now(), time.Now()
	retry := time.Duration(0)
	relabelled := b.policies.Relabelled()
	for {
		changed := b.policies.Changed()
		select {
		case <-relabelled: // be it during a pass that a change of policies has ended, or with that change
			last, relabelled = nil, b.policies.Relabelled()
		default:
		}
		b.publish(progress{})
		began := time.Now()
		next := b.newPass(last)
		cut, err := next.until(ctx, changed)
		pause := backFillEvery
		switch {
		case ctx.Err() != nil:
			return
		case cut:
			continue
		case err != nil:
			b.log.Info("back-fill is not complete, will try again", "err", err.Error())
			retry = next.retryAfter(retry)
			pause = retry // of what has failed
		default:
			retry = 0
		}
		last = next
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-relabelled:
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-time.After(time.Until(began.Add(relabelledRest))):
			}
			continue
		case <-time.After(pause):
		}
		switch now := time.Now(); {
		case now.Sub(all) >= backFillAll:
			last, all, looked = nil, now, now
		case now.Sub(looked) >= backFillEvery:
			last.rested, looked = true, now
		}
	}
}

// retryAfter is after what time it is looked again at what has failed; before is what that was
// after the last pass, if something failed then.
func (p *pass) retryAfter(before time.Duration) time.Duration {
	if p.mayPass {
		return backFillRetry
	}
	return max(backFillRetry, min(2*before, backFillEvery))
}

// until runs the pass until policies change, which cuts it short, or ctx ends.
func (p *pass) until(ctx context.Context, changed <-chan struct{}) (cut bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waits sync.WaitGroup
	waits.Go(func() {
		select {
		case <-changed:
		case <-ctx.Done():
		}
		cancel()
	})
	err = p.run(ctx)
	cut = ctx.Err() != nil
	cancel()
	waits.Wait()
	return cut, err
}

// pass is one look at everything that policies are about, and at everything that carries the
// finalizer.
type pass struct {
	*backFill
	set   *policies.Set
	seen  *pass // at kinds about which policies are the same it is not looked again; nil: at all
	kinds sync.WaitGroup
	// changes are what the graph had counted of each kind when it was looked at. rested: time has
	// passed since, so that kinds are looked at again of which it has counted more.
	changes map[schema.GroupResource]uint64
	rested  bool

	mu      sync.Mutex
	since   mark                           // what is recent began then
	next    mark                           // it will begin then
	ahead   map[schema.GroupResource]int64 // objects of the kinds to look at; known: these are all, and no more
	known   bool
	looked  int64
	tallies map[schema.GroupResource]map[string]tally // by kind and policy
	changed map[finalizers.Result]int64
	pending int64
	waiting map[schema.GroupResource]int64 // pending, by kind
	errs    []error
	undone  map[schema.GroupResource]bool // kinds about which something failed: the next pass looks at them again
	mayPass bool                          // some of it by itself
}

func (b *backFill) newPass(seen *pass) *pass {
	return &pass{
		backFill: b, set: b.policies.Set(), seen: seen,
		tallies: map[schema.GroupResource]map[string]tally{}, changed: map[finalizers.Result]int64{}, ahead: map[schema.GroupResource]int64{}, changes: map[schema.GroupResource]uint64{},
		waiting: map[schema.GroupResource]int64{}, undone: map[schema.GroupResource]bool{},
	}
}

func (p *pass) run(ctx context.Context) error {
	kinds := p.store.Stats().Kinds
	p.reckon(kinds)
	stop := p.show(ctx)
	defer stop()
	carry := p.countAll(kinds)
	carrying := map[schema.GroupResource]map[types.UID]graph.Ref{} // before anything is listed
	for _, v := range p.store.Finalized(v1alpha1.Finalizer) {
		carry.found(v)
		if v.Deleting {
			continue
		}
		if carrying[v.Kind] == nil {
			carrying[v.Kind] = map[types.UID]graph.Ref{}
		}
		carrying[v.Kind][v.UID] = v.Ref
	}
	about, versions := map[schema.GroupResource]bool{}, map[schema.GroupResource]string{}
	for _, k := range kinds {
		versions[k.GroupResource()] = k.Version
		some, full := p.set.AddsFinalizer(k.GroupResource())
		about[k.GroupResource()] = some // be it served now or not
		if !some || !concerned(k) {
			continue
		}
		if p.unchanged(k.GroupResource()) || p.allCarry(k.GroupResource(), carry) {
			p.skip(k.GroupResource())
			continue
		}
		p.begin(k.GroupResource())
		p.inTurn(ctx, k.GroupResource(), func(ctx context.Context, w *kindWork) error {
			return p.kind(ctx, w, k, full, carrying[k.GroupResource()])
		})
	}
	p.takeRest(ctx, about, versions)
	p.kinds.Wait() // their errors are in p.errs
	stop()
	return p.end(ctx)
}

// concerned tells whether there may be objects of a kind that can be looked at, and deleted: what
// can only be read, as metrics can, no policy is about, though '*' names it.
func concerned(k graph.KindStats) bool { return k.Served && k.Listable && k.Deletable }

// kind looks at the objects of a kind that policies may be about, and at those that carry the
// finalizer although no policy selects them.
func (p *pass) kind(ctx context.Context, w *kindWork, k graph.KindStats, full bool, carrying map[types.UID]graph.Ref) error {
	gvk, gvr := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}, k.GroupResource().WithVersion(k.Version)
	selector, some := p.set.FinalizerSelector(k.GroupResource())
	namespaces, lister := p.namespaces(k), p.reader(w)
	if !k.Collected || k.State != graph.Synced {
		selector, some, namespaces = "", true, everywhere // the graph does not know what carries the finalizer
	}
	if some {
		for _, namespace := range namespaces {
			of := &listed{}
			again := func() { of = p.forget(k.GroupResource(), of) }
			if err := lister.EachOf(ctx, gvr, namespace, selector, full, again, func(object map[string]any, m *metav1.ObjectMeta) error {
				delete(carrying, m.UID)
				return p.object(ctx, w, gvk, gvr, object, m, of)
			}); err != nil {
				return err
			}
		}
		if selector == "" && slices.Equal(namespaces, everywhere) {
			return nil
		}
	}
	of := &listed{} // each object is judged once, however often it is listed
	judge := func(object map[string]any, m *metav1.ObjectMeta) error {
		if _, left := carrying[m.UID]; left {
			delete(carrying, m.UID)
			return p.object(ctx, w, gvk, gvr, object, m, of)
		}
		return ctx.Err()
	}
	if len(carrying) > mostGets {
		return lister.Each(ctx, gvr, "", full, judge)
	}
	for _, ref := range carrying {
		object, m, err := lister.Get(ctx, gvr, ref.Namespace, ref.Name, full)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read %s: %w", ref, err)
		default:
			if err := judge(object, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// namespaces are those to list, as a list takes them, of a kind.
func (p *pass) namespaces(k graph.KindStats) []string {
	all, known := p.policies.Namespaces()
	if !k.Namespaced || !known {
		return everywhere
	}
	if names, only := p.set.FinalizerNamespaces(k.GroupResource(), all); only && len(names) <= mostNamespaces {
		return names
	}
	return everywhere
}

// everywhere is how a list takes all namespaces.
var everywhere = []string{""}

const (
	// mostGets is how many objects are read one by one rather than with all others of their kind.
	mostGets = 50
	// mostNamespaces is how many are listed one by one rather than all at once.
	mostNamespaces = 20
)

// unchanged takes over what was found of a kind if policies about it are as they were; and the
// objects, if time has passed.
func (p *pass) unchanged(kind schema.GroupResource) bool {
	now, followed := p.store.Changes(kind)
	if before, counted := p.changes[kind]; counted {
		now = before
	}
	p.changes[kind] = now
	if p.seen == nil || p.seen.tallies[kind] == nil || !p.set.SameDeletions(kind, p.seen.set) {
		return false
	}
	if p.seen.rested && (!followed || now != p.seen.changes[kind]) {
		return false
	}
	p.changes[kind] = p.seen.changes[kind]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tallies[kind] = p.seen.tallies[kind]
	return true
}

func (p *pass) failed(kind schema.GroupResource, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failedLocked(kind, err)
}

// gaveUp is told why a kind was given up, which says more than what failed of it.
func (p *pass) gaveUp(kind schema.GroupResource, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = slices.Insert(p.errs, 0, why)
	p.undone[kind], p.mayPass = true, true
}

func (p *pass) failedLocked(kind schema.GroupResource, err error) {
	const most = 5
	if len(p.errs) < most {
		p.errs = append(p.errs, err)
	}
	p.undone[kind] = true
	p.mayPass = p.mayPass || !finalizers.CannotCarry(err)
}

// end takes the pass into account if it was not cut short: what was done counts, though something
// failed.
func (p *pass) end(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	tallies, total := p.totalsLocked(), int64(0) // no other pass counts any more
	for _, t := range tallies {
		total += t.carrying
	}
	p.metrics.backFill.WithLabelValues("done").Set(float64(total))
	p.metrics.backFill.WithLabelValues("failed").Set(float64(p.changed[finalizers.Failed]))
	if n := p.changed[finalizers.Done] + p.changed[finalizers.Failed]; n > 0 {
		p.log.Info("back-fill", "done", total, "changed", p.changed[finalizers.Done], "failed", p.changed[finalizers.Failed])
	}
	p.publish(progress{tallies: tallies, done: len(p.errs) == 0})
	p.seen = nil // its part is taken over
	if len(p.errs) > 0 {
		maps.DeleteFunc(p.tallies, func(kind schema.GroupResource, _ map[string]tally) bool { return p.undone[kind] })
		return errors.Join(p.errs...)
	}
	p.metrics.backFillSuccess.SetToCurrentTime()
	return nil
}

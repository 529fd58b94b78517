package enforce

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// backFillEvery looks again at kinds of which an object has changed and may have to carry the
	// finalizer: it may have come while the webhook was away. The watches tell which these are.
	backFillEvery = 5 * time.Minute
	// backFillAll looks again at all kinds: what policies are about is counted anew, and a watch may
	// not have told.
	backFillAll = 30 * time.Minute
	// backFillRetry looks again at kinds of which something has failed, and at no others. Where
	// nothing has failed but objects that cannot carry the finalizer, backFillEvery does: users can
	// make such objects, and they stay so.
	backFillRetry = 10 * time.Second
	// relabelledRest is how far apart passes begin that labels of namespaces bring about: each
	// looks at all kinds, and users can change labels all the time.
	relabelledRest = 10 * time.Second
)

// backFill brings the finalizers of what exists in line with the policies, as the webhook does for
// objects that come and change, and counts what policies are about. It keeps nothing: a pass that
// is cut short is begun again, and finds what it did done.
type backFill struct {
	store    *follow.Store
	lister   *finalizers.Lister // through requests
	writer   *finalizers.Writer
	requests *request.Client
	policies *live.State
	board    *board
	metrics  *metrics
	log      logr.Logger
	looks    map[schema.GroupResource]*look // the last complete one at each kind
}

func newBackFill(s *follow.Store, lister *finalizers.Lister, writer *finalizers.Writer, r *request.Client,
	p *live.State, b *board, m *metrics, log logr.Logger) *backFill {
	return &backFill{store: s, lister: lister.Through(r.Send), writer: writer, requests: r, policies: p, board: b,
		metrics: m, log: log, looks: map[schema.GroupResource]*look{}}
}

// run goes on until ctx ends. A change of policies ends a pass, which would only undo what is now
// wanted.
func (b *backFill) run(ctx context.Context) {
	relabelled := b.policies.Relabelled()
	for ctx.Err() == nil {
		changed, began := b.policies.Changed(), time.Now()
		select {
		case <-relabelled: // be it during a pass that a change of policies has ended, or with that change
			relabelled = b.policies.Relabelled()
			clear(b.looks)
		default:
		}
		failed, cut := b.until(ctx, changed)
		if cut {
			continue
		}
		pause := backFillEvery
		if failed != nil {
			b.log.Info("back-fill is not complete, will try again", "err", errors.Join(failed.errs...).Error())
			if failed.mayPass {
				pause = backFillRetry
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-relabelled:
			select {
			case <-ctx.Done():
			case <-changed:
			case <-time.After(time.Until(began.Add(relabelledRest))):
			}
		case <-time.After(pause):
		}
	}
}

// until makes a pass until policies change, which cuts it short, or ctx ends.
func (b *backFill) until(ctx context.Context, changed <-chan struct{}) (failed *failure, cut bool) {
	ctx, cancel := context.WithCancel(ctx)
	var waits sync.WaitGroup
	waits.Go(func() {
		select {
		case <-changed:
		case <-ctx.Done():
		}
		cancel()
	})
	failed = b.pass(ctx)
	cut = ctx.Err() != nil
	cancel()
	waits.Wait()
	return failed, cut
}

// failure is what has failed in a pass, the first of it.
type failure struct {
	errs    []error
	mayPass bool // some of it by itself
}

// pass looks at the kinds that are due, one after the other, at everything that policies are about
// and at everything that carries the finalizer. A kind whose API or webhook fails is given up: the
// next pass tries it again. nil: nothing has failed.
func (b *backFill) pass(ctx context.Context) *failure {
	set := b.policies.Set()
	b.board.update(func(s *snapshot) { s.counted = counted{of: set} })
	carrying := map[schema.GroupResource]map[types.UID]graph.View{} // before anything is listed
	for _, v := range b.store.Finalized(v1beta1.Finalizer) {
		if carrying[v.Kind] == nil {
			carrying[v.Kind] = map[types.UID]graph.View{}
		}
		if !v.Deleting {
			carrying[v.Kind][v.UID] = v
		}
	}
	p := &pass{backFill: b, set: set, now: map[schema.GroupResource]*look{}}
	for _, k := range b.store.Stats().Kinds {
		kind := k.GroupResource()
		l := p.newLook(k, carrying[kind])
		if last := b.looks[kind]; last != nil && !l.due(last) {
			p.now[kind] = last
			continue
		}
		p.now[kind] = l
		l.take(ctx)
		if ctx.Err() != nil {
			return nil
		}
		b.looks[kind] = l
		p.note(l)
	}
	b.looks = p.now
	return p.end()
}

// pass is one look at all kinds.
type pass struct {
	*backFill
	set     *policies.Set
	now     map[schema.GroupResource]*look // as far as it has come
	changed atomic.Int64
	failure failure
	waits   string // why kinds wait for the next pass
}

// note takes in what has failed of a kind that was looked at, and lets go of what that needed.
func (p *pass) note(l *look) {
	p.waits = max(p.waits, l.waits)
	p.failure.mayPass = p.failure.mayPass || l.failure.mayPass
	errs := slices.Concat(p.failure.errs, l.failure.errs)
	p.failure.errs = errs[:min(len(errs), mostErrors)]
	l.pass, l.carrying = nil, nil
}

// mostErrors is how many errors are told of a pass.
const mostErrors = 5

// end tells how far the policies are carried out now.
func (p *pass) end() *failure {
	now := p.counted()
	for _, s := range p.set.Statuses() {
		if s.Ready {
			now.tallies[s.Policy] = now.tallies[s.Policy].plus(tally{}) // be it about nothing
		}
	}
	now.complete, now.done, now.waits = true, len(p.failure.errs) == 0, p.waits
	p.board.update(func(s *snapshot) { s.counted = now })
	total, pending, failed := int64(0), int64(0), int64(0)
	for _, l := range p.now {
		failed += l.refused
	}
	for _, t := range now.tallies {
		total += t.carrying
		pending += t.wanted - t.carrying
	}
	p.metrics.backFill.WithLabelValues("done").Set(float64(total))
	p.metrics.backFill.WithLabelValues("pending").Set(float64(max(0, pending-failed)))
	p.metrics.backFill.WithLabelValues("failed").Set(float64(failed))
	if changed := p.changed.Load(); changed+failed > 0 {
		p.log.Info("back-fill", "done", total, "changed", changed, "failed", failed)
	}
	if !now.done {
		return &p.failure
	}
	p.metrics.backFillSuccess.SetToCurrentTime()
	return nil
}

// show tells how far the pass is from time to time. One that changes nothing, or little, says nothing
// of what holds already.
func (p *pass) show() {
	if p.changed.Add(1)%showEvery == 0 {
		now := p.counted()
		p.board.update(func(s *snapshot) { s.counted = now })
	}
}

// counted sums up what was found of each policy, as far as the pass has come.
func (p *pass) counted() counted {
	out := counted{of: p.set, tallies: map[policies.PolicyKey]tally{}}
	for _, k := range p.store.Stats().Kinds {
		l := p.now[k.GroupResource()]
		if l == nil {
			continue
		}
		l.mu.Lock()
		for key, t := range l.found {
			out.tallies[key] = out.tallies[key].plus(t)
		}
		l.mu.Unlock()
		if !concerned(k) || len(l.how.All) == 0 {
			continue
		}
		var all graph.Counted
		var complete bool
		p.store.Read(func(g *graph.Graph) { all, complete = g.Instances(k.GroupResource()) })
		for _, key := range l.how.All {
			out.tallies[key] = out.tallies[key].plus(tally{matched: int64(all.Count), unknown: !complete})
		}
	}
	return out
}

// concerned tells whether there may be objects of a kind that can be looked at, and deleted: what
// can only be read, as metrics can, no policy is about, though '*' names it.
func concerned(k graph.KindStats) bool { return k.Served && k.Listable && k.Deletable }

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
	// backFillEvery is how often kinds are looked at again of which an object has changed, as the
	// watches show. It may have been created while the webhook was away, and need the finalizer.
	backFillEvery = 5 * time.Minute
	// backFillAll is how often all kinds are looked at again. What policies are about is counted
	// again, a watch may have missed a change, and labels of a namespace may have changed.
	backFillAll = 30 * time.Minute
	// backFillRetry is how soon kinds are looked at again for which something failed. If only objects
	// that cannot carry the finalizer failed, it is backFillEvery: users can make such objects, and
	// they stay so.
	backFillRetry = 10 * time.Second
)

// backFill brings the finalizers of existing objects in line with the policies, as the webhook does
// for new and changed objects, and counts the objects that policies are about. It keeps no state: a
// pass that was cut short begins again, and finds what it has done.
type backFill struct {
	store    *follow.Store
	lister   *finalizers.Lister // sends through requests
	writer   *finalizers.Writer
	requests *request.Client
	policies *live.State
	board    *board
	metrics  *metrics
	log      logr.Logger
	looks    map[schema.GroupResource]*look // the last complete look at each kind
}

func newBackFill(s *follow.Store, lister *finalizers.Lister, writer *finalizers.Writer, r *request.Client,
	p *live.State, b *board, m *metrics, log logr.Logger) *backFill {
	return &backFill{store: s, lister: lister.Through(r.Send), writer: writer, requests: r, policies: p, board: b,
		metrics: m, log: log, looks: map[schema.GroupResource]*look{}}
}

// run makes passes until ctx ends. A change of policies ends a pass, which would undo what is
// wanted now.
func (b *backFill) run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := b.policies.Changed()
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
		case <-time.After(pause):
		}
	}
}

// until makes a pass, which ends early if policies change or ctx ends.
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

// failure holds the first errors of a pass.
type failure struct {
	errs    []error
	mayPass bool // some may pass by themselves
}

// pass looks at the kinds that are due, one after the other: at the objects that policies are
// about, and those that carry the finalizer. If a kind's API or webhook fails, the kind is left to
// the next pass. It returns nil if nothing has failed.
func (b *backFill) pass(ctx context.Context) *failure {
	set := b.policies.Set()
	b.board.update(func(s *snapshot) { s.counted = counted{of: set} })
	carrying := map[schema.GroupResource]map[types.UID]graph.View{} // read before anything is listed
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
	now     map[schema.GroupResource]*look // the looks so far
	changed atomic.Int64
	failure failure
	waits   string // why kinds wait for the next pass
}

// note adds the failures of a look to those of the pass, and drops what the look no longer needs.
func (p *pass) note(l *look) {
	p.waits = max(p.waits, l.waits)
	p.failure.mayPass = p.failure.mayPass || l.failure.mayPass
	errs := slices.Concat(p.failure.errs, l.failure.errs)
	p.failure.errs = errs[:min(len(errs), mostErrors)]
	l.pass, l.carrying = nil, nil
}

// mostErrors is how many errors of a pass are reported.
const mostErrors = 5

// end publishes how far the policies are carried out.
func (p *pass) end() *failure {
	now := p.counted()
	for _, s := range p.set.Statuses() {
		if s.Ready {
			now.tallies[s.Policy] = now.tallies[s.Policy].plus(tally{}) // also if it is about no object
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

// show publishes the progress of the pass from time to time. A pass that changes little does not
// publish any.
func (p *pass) show() {
	if p.changed.Add(1)%showEvery == 0 {
		now := p.counted()
		p.board.update(func(s *snapshot) { s.counted = now })
	}
}

// counted sums up what was found for each policy so far.
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

// concerned reports whether objects of a kind can be listed and deleted. No policy is about kinds
// that can only be read, such as metrics, even if '*' names them.
func concerned(k graph.KindStats) bool { return k.Served && k.Listable && k.Deletable }

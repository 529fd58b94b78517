package namespaces

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/controller/undo"
	"github.com/weir-dev/weir/policies/live"
)

// DefaultNamespaceSyncs is how many namespaces are drained at once. The reference drains 10 (RB
// 9.1). Here they share lists, and their requests share one limit with all others.
const DefaultNamespaceSyncs = 32

const (
	// settleTime is how long changes of a namespace's content are gathered into one pass.
	settleTime = 20 * time.Millisecond
	// showTime is how long watches have to show what a namespace holds, or what deletes did.
	// listEvery is the least time between two live lists of kinds whose labels decide.
	showTime  = 300 * time.Millisecond
	listEvery = time.Second
	// refusedPause is how long a namespace is left alone in which a delete was refused. It doubles each
	// time up to mostRefusedPause.
	refusedPause     = time.Second
	mostRefusedPause = 5 * time.Second
	// conditionsAfter is the age of a drain at which conditions are first written: a namespace that is
	// gone in a moment needs none. conditionsEvery is the least time between two writes.
	conditionsAfter = 250 * time.Millisecond
	conditionsEvery = time.Second
	// blockedAfter is how long a wave waits for the same thing before an Event says so.
	blockedAfter = 5 * time.Second
	// requeueEvery is how often the namespace controller is made to look at an empty namespace. It
	// does so after 5 s (RB 7.7), and then takes a moment.
	requeueEvery = 7 * time.Second
	// serversAgree is how long it may take until all of several API servers refuse creates in a
	// namespace that is being deleted (RB 7.7). A single one refuses at once.
	serversAgree = 5 * time.Second
)

// Options are the options of New.
type Options struct {
	Store      *follow.Store
	Watcher    *follow.Watcher
	Requester  *request.Client
	Reporter   *events.Reporter
	Namespaces typedcorev1.NamespaceInterface
	Leases     typedcoordinationv1.LeasesGetter
	Clock      *live.Clock // the API server's
	Seals      Sealer      // seals waves; nil: there is no key, and any wave that is written is believed
	Policies   *live.State // nil: there are no policies
	Home       string      // Weir's own namespace, which is not drained; empty for none
	Companion  bool        // the namespace controller runs too
	// Archive records namespaces with their content where a policy asks for it; nil: no policy does.
	Archive *undo.Recorder
	// Left is called with each object that is left in a namespace when its draining ends; nil: Weir
	// does not collect.
	Left func(types.UID)
	Log  logr.Logger
}

// Drainer empties namespaces that are being deleted, and finalizes them.
type Drainer struct {
	Options
	queue   workqueue.TypedDelayingInterface[string]
	pauses  workqueue.TypedRateLimiter[string] // between passes that nothing else wakes
	shared  *sharedLists
	working atomic.Int32 // passes under way

	mu      sync.Mutex
	leading bool
	ending  map[string]ending    // namespaces that are being deleted, as the watch shows them
	begun   map[string]*progress // the namespaces under way
	records *rate.Limiter        // of Events that say what was deleted
	// gone holds when each namespace that has gone lately went. What turns up late in it is deleted.
	gone    map[string]time.Time
	servers struct {
		several bool
		until   time.Time // when to look again
	}
}

// progress is what is kept of a namespace between passes. Its loss costs no more than a write or
// two.
type progress struct {
	uid      types.UID
	since    time.Time // when it was first looked at
	reported time.Time // when its conditions were last compared
	why      string    // what it waits for; whyAt is since when
	whyAt    time.Time
	requeued time.Time
	// outside: the namespace waits for what the cluster serves, and not for its content.
	outside atomic.Bool
	// written is when the wave began, as the namespace records it. writtenAt is the same moment by the
	// local clock.
	written, writtenAt time.Time
	// reached is the wave under way; nil before the first. Deletes reads it from other goroutines.
	reached atomic.Pointer[reached]
	went    went // what was deleted
	// quiet is until when the namespace is not looked at again: each object that goes wakes its drain,
	// and neither those that were refused nor lists of labels are to be asked for each time. pause is
	// the last one after a refusal.
	quiet time.Time
	pause time.Duration
	// shown: the watches have shown all that was in the namespace when it was deleted.
	shown bool
}

type reached struct {
	order order
	wave  int
}

// New prepares a Drainer. Nothing is sent before Run.
func New(o Options) *Drainer {
	d := &Drainer{
		Options: o, ending: map[string]ending{}, begun: map[string]*progress{},
		gone: map[string]time.Time{}, records: rate.NewLimiter(recordsASecond, recordsAtOnce),
	}
	d.shared = &sharedLists{
		list: o.Requester.List, others: func() int { return int(d.working.Load()) - 1 },
		lock: &d.mu, next: map[schema.GroupResource]*sharedList{},
	}
	d.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: "namespace"})
	d.pauses = workqueue.NewTypedItemExponentialFailureRateLimiter[string](250*time.Millisecond, time.Minute)
	return d
}

// Close ends the queue. It is for a Drainer that does not Run.
func (d *Drainer) Close() { d.queue.ShutDown() }

// wake has a namespace looked at after a time; 0 is at once.
func (d *Drainer) wake(name, why string, after time.Duration) {
	if log := d.Log.V(2); log.Enabled() {
		log.Info("will look", "namespace", name, "why", why, "after", after.String())
	}
	d.queue.AddAfter(name, after)
}

// changed is called with the namespaces whose content has changed.
func (d *Drainer) changed(names []string) {
	for _, name := range names {
		d.pauses.Forget(name)
		d.wake(name, "its content has changed", settleTime)
	}
}

// Run drains with n goroutines until ctx ends, and joins them.
func (d *Drainer) Run(ctx context.Context, n int) {
	d.Store.Drain(d.changed)
	d.mu.Lock()
	d.leading = true
	if len(d.ending) > 0 {
		d.rediscover()
	}
	for name := range d.ending {
		d.ending[name] = ending{seen: time.Now()} // another of that name may have been seen before
		d.wake(name, "it is being deleted", 0)
	}
	gone := slices.Collect(maps.Keys(d.gone))
	d.mu.Unlock()
	for _, name := range gone {
		d.listen(name)
		d.wake(name, "it is gone", 0)
	}
	var wg sync.WaitGroup
	await.Work(&wg, n, d.queue, func(name string) { d.work(ctx, name) })
	wg.Go(func() { d.followOthers(ctx) })
	<-ctx.Done()
	d.queue.ShutDown()
	wg.Wait()
}

// rediscover requests a discovery of kinds, which goes on while content is being deleted.
func (d *Drainer) rediscover() {
	if !d.Companion { // only the proof that nothing is left needs it
		d.Watcher.Discoveries.Want()
	}
}

// followOthers wakes all namespaces when the policies change, and after each discovery those that
// wait for what the cluster serves. It asks for the next change before it looks, and so misses none.
func (d *Drainer) followOthers(ctx context.Context) {
	_, _, discovered := d.Watcher.Discoveries.Since(time.Time{})
	var changed <-chan struct{} // without policies never
	if d.Policies != nil {
		changed = d.Policies.Changed()
	}
	for all := false; ; {
		d.mu.Lock()
		for name := range d.ending {
			if p := d.begun[name]; all || p != nil && p.outside.Load() {
				d.wake(name, "there may be other policies or kinds", 0)
			}
		}
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
			all, changed = true, d.Policies.Changed()
		case <-discovered:
			all = false
			_, _, discovered = d.Watcher.Discoveries.Since(time.Time{})
		}
	}
}

func (d *Drainer) work(ctx context.Context, name string) {
	d.working.Add(1)
	o, err := d.pass(ctx, name)
	d.working.Add(-1)
	if ctx.Err() == nil {
		d.failing(ctx, name, err)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.Log.Info("draining failed, will try again", "namespace", name, "err", err.Error())
		d.wake(name, "draining failed", d.pauses.When(name))
	case o.done:
		d.end(name)
	case o.after > 0:
		d.wake(name, "the step may be another", o.after)
	default:
		d.wake(name, "nothing has changed for a while", d.pauses.When(name))
	}
}

// outcome is how a pass without an error ends.
type outcome struct {
	done bool // nothing more is to be done about the namespace
	// after is when to look again at the latest, if that is known. If it is 0 the namespace waits for
	// its content, and is looked at again in growing intervals.
	after time.Duration
}

var finished, pending = outcome{done: true}, outcome{}

func recheck(after time.Duration) outcome { return outcome{after: after} }

// begin marks a namespace as being drained, and returns its progress. That belongs to the pass
// under way: each namespace has one at a time.
func (d *Drainer) begin(name string, uid types.UID) *progress {
	d.mu.Lock()
	p, ok := d.begun[name]
	if !ok || p.uid != uid {
		p = &progress{uid: uid, since: time.Now(), went: went{}}
		d.begun[name] = p
	}
	d.mu.Unlock()
	if !ok {
		d.listen(name)
	}
	return p
}

// listen has the graph report changes in a namespace, or stop reporting them. Two such decisions
// reach the graph in their order.
func (d *Drainer) listen(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, begun := d.begun[name]
	_, gone := d.gone[name]
	d.Store.Apply(graph.Draining{Namespace: name, On: begun || gone && d.leading})
}

func (d *Drainer) end(name string) {
	d.pauses.Forget(name)
	d.mu.Lock()
	p, begun := d.begun[name]
	delete(d.begun, name)
	d.mu.Unlock()
	d.listen(name)
	if begun && d.Archive != nil {
		d.Archive.Ended(p.uid)
	}
	if !begun || d.Left == nil {
		return
	}
	for _, k := range d.Store.Inventory(name).Kinds {
		for v := range d.Store.Content(name, k.Kind) {
			d.Left(v.UID)
		}
	}
}

// Deletes reports whether the drainer, and not the collector, deletes an object. It deletes all
// that is in a namespace that it drains: a Secret whose owner is gone may still be in use by pods,
// and goes in its wave. But an awaited object, for which an owner's foreground deletion waits, is
// the collector's until its wave has come: the owner may be in an earlier wave, which would wait
// for ever.
func (d *Drainer) Deletes(ref graph.Ref, awaited bool) bool {
	d.mu.Lock()
	p := d.begun[ref.Namespace]
	d.mu.Unlock()
	if p == nil {
		return false
	}
	r := p.reached.Load()
	if r == nil {
		return false
	}
	waves := r.order.wavesOf(ref.Kind)
	return !awaited || waves[len(waves)-1] <= r.wave
}

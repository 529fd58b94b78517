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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// DefaultNamespaceSyncs is how many namespaces are drained at once. The reference takes 10 (RB
// 9.1); those that are drained side by side share lists here, and their requests share one limit
// with everything else.
const DefaultNamespaceSyncs = 32

const (
	// settleTime gathers changes to a namespace's content into one look at it.
	settleTime = 20 * time.Millisecond
	// showTime is how long a pass waits for the watch to show what its deletes did, before it
	// leaves the rest to the next pass.
	showTime = 300 * time.Millisecond
	// conditionsAfter spares a namespace that is gone in a moment the writing of conditions, and
	// conditionsEvery one that drains for long their rewriting at each step.
	conditionsAfter = 250 * time.Millisecond
	conditionsEvery = time.Second
	// blockedAfter is for how long a wave waits for the same before an Event says so.
	blockedAfter = 5 * time.Second
	// requeueEvery is how often the namespace controller is asked to look at an empty namespace. It
	// does 5 s later (RB 7.7), and takes a moment then.
	requeueEvery = 7 * time.Second
	// serversAgree is how long several API servers may take until all of them refuse to create in a
	// namespace that is being deleted (RB 7.7). A single one refuses at once.
	serversAgree = 5 * time.Second
)

// Options are what a drainer works with.
type Options struct {
	Store      *follow.Store
	Watcher    *follow.Watcher
	Requester  *request.Client
	Reporter   *events.Reporter
	Namespaces typedcorev1.NamespaceInterface
	Leases     typedcoordinationv1.LeasesGetter
	Clock      *live.Clock // of the API server
	Seals      Sealer      // of waves; nil: there is no key, and what is written is believed
	Policies   *live.State // nil: there are none
	Home       string      // the namespace that is not drained: Weir's own; empty for none
	Companion  bool        // the namespace controller runs too
	// Archive records namespaces with what is in them, where a policy asks for it; nil: nothing does.
	Archive *undo.Recorder
	// Left is told of each object that is left in a namespace when its draining ends; nil: Weir
	// does not collect.
	Left func(types.UID)
	Log  logr.Logger
}

// Drainer empties namespaces that are being deleted and lets them go: the work of the namespace
// controller. What comes next is package drain's to say.
type Drainer struct {
	Options
	foreign *foreign
	shared  *sharedLists
	queue   workqueue.TypedDelayingInterface[string]
	pauses  workqueue.TypedRateLimiter[string] // between looks for which nothing else gives the time
	working atomic.Int32                       // passes under way

	mu      sync.Mutex
	leading bool
	ending  map[string]ending        // namespaces that are being deleted, as their watch shows them
	signals map[string]*await.Change // of the content of a namespace, where it is waited for
	begun   map[string]*progress     // the namespaces under way
	failed  map[string]failure       // namespaces whose passes end in errors
	records *rate.Limiter            // of Events that tell what was deleted
	// recentlyDeleted are namespaces that have gone, and when: what turns up in them late is
	// deleted.
	recentlyDeleted map[string]time.Time
	servers         struct {
		several bool
		until   time.Time // when to look again
	}
	// listening is held while it is decided whether the graph is to tell of changes in a namespace,
	// and told to: two who decide one after the other must not be heard the other way round.
	listening sync.Mutex
}

// progress is what is remembered of a namespace between passes. Losing it costs nothing but a write
// or two.
type progress struct {
	uid      types.UID
	since    time.Time // when it was first looked at
	reported time.Time // when its conditions were last looked after
	why      string    // what it waits for, and since when
	whyAt    time.Time
	requeued time.Time
	// outside: what it waits for is not in it, but in what the cluster serves.
	outside bool
	// written is since when the wave is under way, as the namespace says it, and writtenAt when
	// that was by our clock.
	written, writtenAt time.Time
	// reached is the wave under way; nil before there is one. Others read it.
	reached atomic.Pointer[reached]
	// went are the objects that were deleted, by kind: passes delete side by side.
	went went
	// sorted are the waves of the objects of kinds whose labels decide: the graph has no labels.
	sorted map[schema.GroupResource]map[types.UID]sorted
	// refused are the objects whose delete was refused.
	refused refused
	// shown: the watches have shown what was in it when it was deleted.
	shown bool
}

// sorted is the wave of an object as its labels were at a resourceVersion.
type sorted struct {
	version string
	wave    int
}

type reached struct {
	order order
	wave  int
}

// New prepares a Drainer. Nothing is sent before Run.
func New(o Options) *Drainer {
	d := &Drainer{Options: o, foreign: &foreign{store: o.Store, all: map[types.UID]foreignHook{}}}
	d.shared = &sharedLists{list: o.Requester.List, others: func() int { return int(d.working.Load()) - 1 }, next: map[schema.GroupResource]*sharedList{}}
	d.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: "namespace"})
	d.pauses = workqueue.NewTypedItemExponentialFailureRateLimiter[string](250*time.Millisecond, time.Minute)
	d.ending, d.signals, d.begun = map[string]ending{}, map[string]*await.Change{}, map[string]*progress{}
	d.failed, d.recentlyDeleted = map[string]failure{}, map[string]time.Time{}
	d.records = rate.NewLimiter(recordsASecond, recordsAtOnce)
	return d
}

// Webhooks is told of each webhook configuration that is there.
func (d *Drainer) Webhooks(configuration *metav1.PartialObjectMetadata) {
	d.foreign.seen(configuration)
}

// Close ends the queue; Run does, where it has begun.
func (d *Drainer) Close() { d.queue.ShutDown() }

// wake has a namespace looked at: at once, or after a time.
func (d *Drainer) wake(name, why string, after time.Duration) {
	if log := d.Log.V(2); log.Enabled() {
		log.Info("will look", "namespace", name, "why", why, "after", after.String())
	}
	d.queue.AddAfter(name, after)
}

// changed is told which namespaces' content has changed.
func (d *Drainer) changed(names []string) {
	d.mu.Lock()
	for _, name := range names {
		if c := d.signals[name]; c != nil {
			c.Notify()
			delete(d.signals, name)
		}
	}
	d.mu.Unlock()
	for _, name := range names {
		d.pauses.Forget(name)
		d.wake(name, "its content has changed", settleTime)
	}
}

// signal returns a channel that is closed at the next change of a namespace's content.
func (d *Drainer) signal(name string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.signals[name]
	if c == nil {
		c = &await.Change{}
		d.signals[name] = c
	}
	return c.Next()
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
		d.ending[name] = ending{seen: time.Now()} // which of that name was seen before is not known
		d.wake(name, "it is being deleted", 0)
	}
	d.forgetOldLocked()
	recentlyDeleted := slices.Collect(maps.Keys(d.recentlyDeleted))
	d.mu.Unlock()
	for _, name := range recentlyDeleted {
		d.listen(name)
		d.wake(name, "it is gone", 0)
	}
	var wg sync.WaitGroup
	await.Work(&wg, n, d.queue, func(name string) { d.work(ctx, name) })
	if d.Policies != nil {
		wg.Go(func() { d.followPolicies(ctx) })
	}
	wg.Go(func() { d.followDiscovery(ctx) })
	<-ctx.Done()
	d.queue.ShutDown()
	wg.Wait()
}

// followPolicies looks at all namespaces again when there are other policies.
func (d *Drainer) followPolicies(ctx context.Context) {
	for next := d.Policies.Changed(); ; {
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
		next = d.Policies.Changed() // before the look: what changes after it is not missed
		d.mu.Lock()
		for name := range d.ending {
			d.wake(name, "there are other policies", 0)
		}
		d.mu.Unlock()
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

// outcome is how a pass ends, when it is not in an error.
type outcome struct {
	done bool // the namespace needs nothing more from us
	// after is when to look again at the latest, if that is known. Without it the namespace waits
	// for its content, and is looked at again in intervals that grow.
	after time.Duration
}

var finished, pending = outcome{done: true}, outcome{}

func recheck(after time.Duration) outcome { return outcome{after: after} }

// begin marks a namespace as being drained, if it is not yet. What it returns belongs to the pass
// that is under way: there is one at a time.
func (d *Drainer) begin(name string, uid types.UID) *progress {
	d.mu.Lock()
	p, ok := d.begun[name]
	if !ok || p.uid != uid {
		p = &progress{uid: uid, since: time.Now(), sorted: map[schema.GroupResource]map[types.UID]sorted{}, refused: refused{}}
		d.begun[name] = p
	}
	d.mu.Unlock()
	if !ok {
		d.listen(name)
	}
	return p
}

// listen has the graph tell of changes in a namespace, or not any more.
func (d *Drainer) listen(name string) {
	d.listening.Lock()
	defer d.listening.Unlock()
	d.mu.Lock()
	_, begun := d.begun[name]
	_, recentlyDeleted := d.recentlyDeleted[name]
	on := begun || recentlyDeleted && d.leading
	d.mu.Unlock()
	d.Store.Apply(graph.Draining{Namespace: name, On: on})
}

func (d *Drainer) end(name string) {
	d.pauses.Forget(name)
	d.mu.Lock()
	p, begun := d.begun[name]
	delete(d.begun, name)
	delete(d.failed, name)
	delete(d.signals, name)
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

// Deletes tells whether an object is the drainer's to delete: all that is in a namespace that it
// drains, each object once. A Secret whose owner is gone may still be in use by pods, and goes with
// its wave. But what an owner awaits that is being deleted is the collector's until its wave has
// come: the owner may be of an earlier one, which would wait for ever.
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

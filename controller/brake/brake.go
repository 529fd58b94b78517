package brake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// mostWeighed bounds the references that are followed to weigh objects. It is more than any limit
// that makes sense.
const mostWeighed = 20_000

// Reporter sends Events.
type Reporter interface {
	// CollectionHeld sends an Event on a HeldCollection: something is held, or a decision had an
	// effect.
	CollectionHeld(name string, uid types.UID, warning bool, text string)
}

// Options are the options of New.
type Options struct {
	Limits Limits
	// Beside: another collector deletes, and a Guard holds it.
	Beside bool
	Store  *follow.Store
	Client dynamic.Interface // for HeldCollections
	// Record is the ConfigMaps of Weir's own namespace. One of them records requested deletions that
	// are not finished; nil: nothing is recorded.
	Record   typedcorev1.ConfigMapInterface
	Reporter Reporter
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Brake holds what would exceed the limits.
type Brake struct {
	Options
	metrics *metrics
	// requeue has garbage decided about again; requeueRequested does so with what was deleted by
	// request.
	requeue, requeueRequested func(types.UID)
	endings                   *endings      // set by Recall
	begun                     chan struct{} // has one element when a hold begins

	mu     sync.Mutex
	ledger *Ledger
	requested
	discarded discarded
	history   int  // how often the API server's history went back
	keeps     bool // this process reads HeldCollections again when the history went back
	unsure    bool // nothing is deleted by inference until they are read
}

// New returns a Brake. It sends nothing.
func New(o Options) *Brake {
	return &Brake{Options: o, metrics: newMetrics(o.Registry), begun: make(chan struct{}, 1),
		ledger: NewLedger(o.Limits, o.Beside), requested: newRequested(), discarded: discarded{}}
}

// Rewound is called when the API server's history went back.
func (b *Brake) Rewound(string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Rewound()
	b.history++
	b.unsure = b.keeps
	clear(b.decided)
	clear(b.discarded)
}

// Allows reports whether an object may be deleted. If it is neither allowed nor held, again is
// after what time to ask again. If it may be, its dependents in the graph inherit the inference by
// which it is deleted.
func (b *Brake) Allows(a graph.Action) (yes bool, again time.Duration) { return b.allows(a, nil) }

// allows is Allows. others returns objects that are to go for the same kind of owners and that the
// graph does not show to be garbage; it may be nil.
func (b *Brake) allows(
	a graph.Action, others func(schema.GroupResource) []graph.Ref,
) (yes bool, again time.Duration) {
	if a.Inferred.Conclusion == graph.Asked || b.Limits.Off() {
		return true, 0
	}
	if b.discards(a) {
		return false, 0
	}
	switch b.ask(a, others) {
	case Later:
		return false, Pause
	case Held:
		b.metrics.answered(a, "held")
		return false, 0
	}
	b.metrics.answered(a, "go")
	if a.Dependents > 0 {
		b.Store.Apply(graph.Collecting{Kind: a.Object.Kind, UID: a.Object.UID, Inference: a.Inferred})
	}
	return true, 0
}

// Proceeds reports whether a person has let an object go.
func (b *Brake) Proceeds(a graph.Action) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.Proceeds(a.Object, a.Inferred)
}

func (b *Brake) ask(a graph.Action, others func(schema.GroupResource) []graph.Ref) Answer {
	owners := a.Inferred.Owners
	b.mu.Lock()
	if b.unsure {
		b.mu.Unlock()
		return Later
	}
	answer := b.ledger.Ask(time.Now(), a)
	around := b.ledger.LooksAround(owners)
	b.mu.Unlock()
	if answer != Weigh {
		return answer
	}
	var more []graph.Ref
	if around && others != nil {
		more = others(owners)
	}
	var load Load
	b.Store.Read(func(g *graph.Graph) { load = loadOf(g, a, b.Limits, around, more) })
	b.mu.Lock()
	answer, began := b.ledger.Charge(time.Now(), a, load)
	b.mu.Unlock()
	if began {
		b.begins(a)
	}
	return answer
}

// Going is called with each object that a watch shows to be gone, before the graph is. Beside
// another collector it counts deletes by inference, also those about which another process was
// asked. So each process counts what any of them lets through, as long as it sees the ends of
// owners before those of dependents.
func (b *Brake) Going(uid types.UID) {
	if !b.Beside || b.Limits.Off() {
		return
	}
	var a graph.Action
	var load Load
	b.Store.Read(func(g *graph.Graph) {
		basis := g.BasisOf(uid)
		if basis.Settled && basis.Inference.Conclusion != graph.Asked && !isCollectorCanary(basis.Object) {
			a = deleteFor(basis)
			load = loadOf(g, a, b.Limits, false, nil)
		}
	})
	if a.Object.UID == "" {
		return
	}
	b.mu.Lock()
	why := b.ledger.Went(time.Now(), a, load)
	b.mu.Unlock()
	if why == "" || !b.stands(a.Inferred.Owners, uid) {
		return // nothing is left to hold; what comes later is counted with what went
	}
	b.mu.Lock()
	began := b.ledger.Exceeded(time.Now(), a.Inferred.Owners, why)
	b.mu.Unlock()
	if began {
		b.begins(a)
	}
}

// stands reports whether an object other than beside is to go for a kind of owners.
func (b *Brake) stands(owners schema.GroupResource, beside types.UID) bool {
	var all []graph.Ref
	b.Store.Read(func(g *graph.Graph) { all = g.Suspects(owners, 2) })
	return slices.ContainsFunc(all, func(o graph.Ref) bool { return o.UID != beside })
}

// isCollectorCanary reports whether o is the ConfigMap that Weir creates for the other collector to
// delete.
func isCollectorCanary(o graph.Ref) bool {
	return o.Kind == kinds.ConfigMaps && o.Name == v1beta1.CollectorCanary
}

// deleteFor returns the action of another collector that deletes an object.
func deleteFor(b graph.Basis) graph.Action {
	return graph.Action{Verb: graph.Delete, Object: b.Object, Dependents: b.Dependents, Inferred: b.Inference}
}

// begins logs that a kind of owners is held from now on, and with which object that began.
func (b *Brake) begins(at graph.Action) {
	b.Log.Info("held: Weir did not see the delete of an owner", "name", at.Inferred.Owners.String(),
		"because", at.Inferred.Conclusion.String(), "object", at.Object.String(), "why", at.Why)
	b.wake()
}

// wake has Run look at once.
func (b *Brake) wake() {
	select {
	case b.begun <- struct{}{}:
	default:
	}
}

// loadOf weighs an object. With around it also returns all that is to go for the same kind of
// owners, including more.
func loadOf(g *graph.Graph, a graph.Action, l Limits, around bool, more []graph.Ref) Load {
	load := Load{Sizes: counts{}}
	load.Weight, _ = g.Weigh(mostWeighed, a.Object.UID)
	for _, f := range load.Weight {
		load.Sizes[f.Kind] = g.Objects(f.Kind)
	}
	if around {
		load.Others = othersOf(g, a.Inferred.Owners, l, more)
	}
	for _, o := range load.Others {
		load.Sizes[o.Kind] = g.Objects(o.Kind)
	}
	return load
}

// othersOf returns the objects that are to go for a kind of owners, including more.
func othersOf(g *graph.Graph, owners schema.GroupResource, l Limits, more []graph.Ref) []graph.Ref {
	all := g.Suspects(owners, l.Most+1)
	there := map[types.UID]bool{}
	for _, o := range all {
		there[o.UID] = true
	}
	for _, o := range more {
		if !there[o.UID] && !g.Deleted(o.UID) {
			all = append(all, o)
		}
	}
	return all
}

// Deleted records that an object was deleted.
func (b *Brake) Deleted(a graph.Action) {
	if a.Inferred.Conclusion == graph.Asked {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Gone(a)
}

// Run keeps the HeldCollections until ctx ends, after Begin. requeue is called with each object
// that a decision lets go or keeps, or requested with it if it was deleted by request.
func (b *Brake) Run(ctx context.Context, requeue, requested func(types.UID)) {
	b.requeue, b.requeueRequested = requeue, requested
	k := keeper{Brake: b, failing: rate.Sometimes{Interval: failureEvery}, records: map[cause]*record{}}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		k.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-b.begun:
		}
	}
}

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

// mostWeighed bounds the references that are looked at to know what goes with objects: more than
// any limit that makes sense.
const mostWeighed = 20_000

// Reporter tells users.
type Reporter interface {
	// CollectionHeld says in an Event on a HeldCollection that something is held, or what became of
	// a decision.
	CollectionHeld(name string, uid types.UID, warning bool, text string)
}

// Options are what a Brake needs to know.
type Options struct {
	Limits Limits
	// Beside: another collector deletes, and Guard holds it.
	Beside bool
	Store  *follow.Store
	Client dynamic.Interface // for HeldCollections
	// Record is where ConfigMaps are in Weir's own namespace, one of which records what was asked
	// for and is not done; nil: nothing is recorded.
	Record   typedcorev1.ConfigMapInterface
	Reporter Reporter
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Brake holds what would go beyond the limits.
type Brake struct {
	Options
	metrics *metrics
	// requeue has garbage be decided about once more, requeueRequested what was deleted by request.
	requeue, requeueRequested func(types.UID)
	endings                   *endings      // from Recall on
	begun                     chan struct{} // has one element when something begins to be held

	mu     sync.Mutex
	ledger *Ledger
	requested
	discarded discarded
	history   int  // how often it went back
	keeps     bool // HeldCollections, which say what was held in the history that it went back to
	unsure    bool // that is to be read, before anything else goes by inference
}

// New makes one. Nothing is sent yet.
func New(o Options) *Brake {
	return &Brake{Options: o, metrics: newMetrics(o.Registry), begun: make(chan struct{}, 1),
		ledger: NewLedger(o.Limits, o.Beside), requested: newRequested(), discarded: discarded{}}
}

// Rewound is told that the history of the API server went back.
func (b *Brake) Rewound(string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Rewound()
	b.history++
	b.unsure = b.keeps
	clear(b.decided)
	clear(b.discarded)
}

// Allows tells whether an object may be deleted, or after what time that is to be asked again, if
// it is not held. It has the graph pass on why the object goes, to what depends on it.
func (b *Brake) Allows(a graph.Action) (yes bool, again time.Duration) { return b.allows(a, nil) }

// allows is Allows where others may be known that are to go for the same kind of owners, and that
// the graph does not show to be garbage.
func (b *Brake) allows(a graph.Action, others func(schema.GroupResource) []graph.Ref) (yes bool, again time.Duration) {
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

// Proceeds tells whether a person has decided that an object goes.
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

// Going is told of each object that a watch shows to be gone, before the graph is. Beside another
// collector it counts what that has deleted by inference, be it that another process was asked. So
// each process counts what any of them lets through, as long as it sees the ends of owners before
// those of dependents.
func (b *Brake) Going(uid types.UID) {
	if !b.Beside || b.Limits.Off() {
		return
	}
	var a graph.Action
	var load Load
	b.Store.Read(func(g *graph.Graph) {
		if basis := g.BasisOf(uid); basis.Settled && basis.Inference.Conclusion != graph.Asked && !isCollectorCanary(basis.Object) {
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
		return // there is nothing to hold, and what comes is counted with what went
	}
	b.mu.Lock()
	began := b.ledger.Exceeded(time.Now(), a.Inferred.Owners, why)
	b.mu.Unlock()
	if began {
		b.begins(a)
	}
}

// stands tells whether something is to go for a kind of owners, beside one object.
func (b *Brake) stands(owners schema.GroupResource, beside types.UID) bool {
	var all []graph.Ref
	b.Store.Read(func(g *graph.Graph) { all = g.Suspects(owners, 2) })
	return slices.ContainsFunc(all, func(o graph.Ref) bool { return o.UID != beside })
}

// isCollectorCanary: Weir plants that ConfigMap for the other collector to delete.
func isCollectorCanary(o graph.Ref) bool {
	return o.Kind == kinds.ConfigMaps && o.Name == v1beta1.CollectorCanary
}

// deleteFor is what another collector does.
func deleteFor(b graph.Basis) graph.Action {
	return graph.Action{Verb: graph.Delete, Object: b.Object, Dependents: b.Dependents, Inferred: b.Inference}
}

// begins says that a kind of owners has begun to be held, at an object.
func (b *Brake) begins(at graph.Action) {
	b.Log.Info("held: Weir did not see the delete of an owner", "name", at.Inferred.Owners.String(),
		"because", at.Inferred.Conclusion.String(), "object", at.Object.String(), "why", at.Why)
	b.wake()
}

// wake has the HeldCollections looked after at once.
func (b *Brake) wake() {
	select {
	case b.begun <- struct{}{}:
	default:
	}
}

// loadOf is what goes with an object, and around it, with more that is to go for its kind of owners.
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

// othersOf are the objects that are to go for a kind of owners, with more of them.
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

// Deleted takes in that an object was deleted.
func (b *Brake) Deleted(a graph.Action) {
	if a.Inferred.Conclusion == graph.Asked {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Gone(a)
}

// Run keeps the HeldCollections until ctx ends, after Begin. requeue is told of each object that a person lets
// go, requested of those among them that were deleted by request.
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

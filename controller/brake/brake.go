package brake

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
)

// mostWeighed bounds the references that are followed to weigh objects. It is more than any limit
// that makes sense.
const mostWeighed = 20_000

// Options are the options of New.
type Options struct {
	Limits Limits
	Store  *follow.Store
	Client dynamic.Interface // for HeldCollections
	// Record is the ConfigMaps of Weir's own namespace. One of them records requested deletions that
	// are not finished; nil: nothing is recorded.
	Record   typedcorev1.ConfigMapInterface
	Reporter *events.Reporter
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
	unsure    bool // nothing is deleted by inference until HeldCollections are read
}

// New returns a Brake. It sends nothing.
func New(o Options) *Brake {
	return &Brake{Options: o, metrics: newMetrics(o.Registry), begun: make(chan struct{}, 1),
		ledger: NewLedger(o.Limits), requested: newRequested(), discarded: discarded{}}
}

// Rewound is called when the API server's history went back.
func (b *Brake) Rewound(string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Rewound()
	b.history++
	b.unsure = true
	clear(b.decided)
	clear(b.discarded)
}

// Begin has nothing deleted by inference until Run has read what is held.
func (b *Brake) Begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unsure = true
}

// Allows reports whether an object may be deleted. If it is neither allowed nor held, again is
// after what time to ask again. If it may be, its dependents in the graph inherit the inference by
// which it is deleted.
func (b *Brake) Allows(a graph.Action) (yes bool, again time.Duration) {
	if a.Inferred.Conclusion == graph.Asked || b.Limits.Off() {
		return true, 0
	}
	if b.discards(a) {
		return false, 0
	}
	switch b.ask(a) {
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

func (b *Brake) ask(a graph.Action) Answer {
	b.mu.Lock()
	if b.unsure {
		b.mu.Unlock()
		return Later
	}
	answer, began := b.ledger.Ask(time.Now(), a, func(around bool) (load Load) {
		b.Store.Read(func(g *graph.Graph) { load = loadOf(g, a, b.Limits, around) })
		return load
	})
	b.mu.Unlock()
	if began {
		b.Log.Info("held: Weir did not see the delete of an owner", "name", a.Inferred.Owners.String(),
			"because", a.Inferred.Conclusion.String(), "object", a.Object.String(), "why", a.Why)
		await.Wake(b.begun)
	}
	return answer
}

// loadOf weighs an object. With around it also returns all that is to go for the same kind of
// owners.
func loadOf(g *graph.Graph, a graph.Action, l Limits, around bool) Load {
	load := Load{Sizes: counts{}}
	load.Weight, _ = g.Weigh(mostWeighed, a.Object.UID)
	for _, f := range load.Weight {
		load.Sizes[f.Kind] = g.Objects(f.Kind)
	}
	for next := uint32(0); around; around = next != 0 && len(load.Others) <= l.Most {
		var found []graph.Inferred
		found, _, next = g.InferredFrom(a.Inferred.Owners, next)
		for _, o := range found {
			if !o.Inherited {
				load.Others = append(load.Others, o.Ref)
			}
		}
	}
	for _, o := range load.Others {
		load.Sizes[o.Kind] = g.Objects(o.Kind)
	}
	return load
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

package brake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

const (
	// behind is how long this graph may take to show what another collector has seen. After that, what
	// it does not show counts as inferred.
	behind = 2 * time.Second
	// waits is how long the first answer about an object waits for the graph. Mostly the graph is
	// behind by milliseconds, and another try costs a request. It is short because the other
	// collector's worker waits meanwhile.
	waits, polls = 100 * time.Millisecond, 5 * time.Millisecond
	// mostRemembered bounds the objects that were asked about lately.
	mostRemembered = 20_000
)

// Guard answers for each delete of another collector, where Weir does not collect: the API server
// asks before the delete. Guard deletes nothing, and keeps for long only what exceeds the limits.
type Guard struct {
	*Brake
	ready func() error // returns nil once the graph has all kinds; not called after that
	known atomic.Bool

	mu     sync.Mutex
	asked  map[types.UID]time.Time // when each object was first asked about
	turned time.Time               // when asked was last cleared
	// doubted holds objects that the other collector wants to delete although the graph does not show
	// that all owners are gone. They are grouped by the kind of an owner that exists or is not known.
	// If the other collector is wrong it is wrong about many, so they count together before the first
	// one goes.
	doubted map[schema.GroupResource]map[types.UID]graph.Ref
}

// NewGuard returns a Guard that asks b. Before ready returns nil nothing may be deleted, since
// nothing is known.
func NewGuard(b *Brake, ready func() error) *Guard {
	return &Guard{
		Brake: b, ready: ready,
		asked: map[types.UID]time.Time{}, doubted: map[schema.GroupResource]map[types.UID]graph.Ref{},
	}
}

// Holds returns why an object must not be deleted now; "" if it may be. The other collector asks
// again by itself.
func (g *Guard) Holds(ctx context.Context, uid types.UID) string {
	if !g.known.Load() {
		if err := g.ready(); err != nil {
			return "Weir does not know the cluster yet: " + err.Error()
		}
		g.known.Store(true)
	}
	if why := g.Store.Rewound(); why != "" {
		return "Weir lists everything again (" + why + ")"
	}
	basis := g.basis(ctx, uid)
	g.doubt(basis)
	if !basis.Settled && time.Since(g.first(uid)) < behind {
		return "Weir does not see yet that all owners of this object are gone"
	}
	if basis.Object.UID == "" {
		return "" // of a kind that Weir does not follow, or without owners: nothing is known of it
	}
	yes, again := g.allows(deleteFor(basis), g.doubts)
	switch {
	case yes:
		return ""
	case again > 0:
		return fmt.Sprintf("Weir did not see its owner deleted (%s), and is counting what else would be deleted",
			basis.Inference.Owners)
	case !basis.Settled:
		// Weir's controller sees no reason to delete it, and mostly has no HeldCollection to decide
		// about.
		return "Weir cannot confirm that all owners of this object are gone, and the brake's limit is exceeded. If they " +
			"exist, restart kube-controller-manager: it may remember them as gone. If they are gone, see what Weir " +
			"holds: kubectl get held " + basis.Inference.Owners.String() + " -o wide"
	}
	return "Weir did not see its owner deleted, and the brake's limit is exceeded. To see what is held, and to decide: " +
		"kubectl get held " + basis.Inference.Owners.String() + " -o wide"
}

// basis returns what the graph has about an object. At first it waits a moment for the graph to
// catch up.
func (g *Guard) basis(ctx context.Context, uid types.UID) (b graph.Basis) {
	look := func() bool {
		g.Store.Read(func(gr *graph.Graph) { b = gr.BasisOf(uid) })
		return b.Settled
	}
	if look() || time.Since(g.first(uid)) > waits {
		return b
	}
	ctx, cancel := context.WithTimeout(ctx, waits)
	defer cancel()
	tick := time.NewTicker(polls)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return b
		case <-tick.C:
			if look() {
				return b
			}
		}
	}
}

// first returns when an object was first asked about.
func (g *Guard) first(uid types.UID) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Sub(g.turned) > window || len(g.asked) >= mostRemembered {
		g.turned = now // objects that are still asked about come back
		clear(g.asked)
		clear(g.doubted)
	}
	at, ok := g.asked[uid]
	if !ok {
		at = now
		g.asked[uid] = at
	}
	return at
}

// doubt records whether the graph shows that all owners of an object are gone.
func (g *Guard) doubt(b graph.Basis) {
	if b.Object.UID == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.Settled {
		for _, of := range g.doubted {
			delete(of, b.Object.UID)
		}
		return
	}
	of := g.doubted[b.Inference.Owners]
	if of == nil {
		of = map[types.UID]graph.Ref{}
		g.doubted[b.Inference.Owners] = of
	}
	if len(of) < mostRemembered {
		of[b.Object.UID] = b.Object
	}
}

// doubts returns the doubted objects of a kind of owners.
func (g *Guard) doubts(owners schema.GroupResource) []graph.Ref {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.doubted[owners]))
}

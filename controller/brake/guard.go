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
	// behind is how long this graph may need to show what another collector has seen. What it does
	// not show by then is concluded.
	behind = 2 * time.Second
	// waits is how long the first answer about an object waits for the graph: mostly it is behind
	// by milliseconds, and who asks again spends a request. The other collector's worker waits
	// meanwhile, so it is short.
	waits, polls = 100 * time.Millisecond, 5 * time.Millisecond
	// mostRemembered bounds the objects that were asked about in the last minutes.
	mostRemembered = 20_000
)

// Guard answers for what another collector deletes, where Weir does not collect: the API server
// asks before each delete. It deletes nothing and keeps nothing for long that is not past the
// limits.
type Guard struct {
	*Brake
	ready func() error // nil once the graph has all kinds; only asked until then
	known atomic.Bool

	mu     sync.Mutex
	asked  map[types.UID]time.Time // when an object was first asked about
	turned time.Time               // when that was begun anew
	// doubted are objects of which the graph does not show that all owners are gone, by the kind of
	// an owner that it shows, or does not know: the other collector wants to delete them. Where that
	// is wrong it is wrong for many, so they count together before the first one goes.
	doubted map[schema.GroupResource]map[types.UID]graph.Ref
}

// NewGuard makes one that asks a Brake. Before ready is nil nothing may be deleted, since nothing
// is known.
func NewGuard(b *Brake, ready func() error) *Guard {
	return &Guard{Brake: b, ready: ready, asked: map[types.UID]time.Time{}, doubted: map[schema.GroupResource]map[types.UID]graph.Ref{}}
}

// Holds says why an object must not be deleted now; "" if it may be. The other collector asks again
// by itself.
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
		return "" // of a kind that Weir does not follow, or without owners: there is nothing to go by
	}
	yes, again := g.allows(deleteFor(basis), g.doubts)
	switch {
	case yes:
		return ""
	case again > 0:
		return fmt.Sprintf("Weir did not see its owner deleted (%s), and is counting what else would be deleted", basis.Inference.Owners)
	case !basis.Settled:
		// Its own controller sees no reason to delete it, and mostly has no HeldCollection to
		// decide about.
		return "Weir cannot confirm that all owners of this object are gone, and the brake's limit is exceeded. If they exist, restart kube-controller-manager: " +
			"it may remember them as gone. If they are gone, see what Weir holds: kubectl get held " + basis.Inference.Owners.String() + " -o wide"
	}
	return "Weir did not see its owner deleted, and the brake's limit is exceeded. To see what is held, and to decide: kubectl get held " + basis.Inference.Owners.String() + " -o wide"
}

// basis looks at the graph, and the first time waits a moment for it to come to know.
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

// first is when an object was first asked about.
func (g *Guard) first(uid types.UID) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Sub(g.turned) > window || len(g.asked) >= mostRemembered {
		g.turned = now // what is still asked about comes back
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

// doubt takes in whether the graph shows that all owners of an object are gone.
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

// doubts are the objects that are doubted for a kind of owners.
func (g *Guard) doubts(owners schema.GroupResource) []graph.Ref {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.doubted[owners]))
}

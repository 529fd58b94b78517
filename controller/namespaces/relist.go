package namespaces

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

const (
	// relistAfter is how long a wave waits for the same before what it waits for is listed live,
	// and after how long the first time again; each time twice as long, up to mostRelist.
	relistAfter = 30 * time.Second
	mostRelist  = time.Hour
	// mostLookups bounds how many objects that a list does not show are looked up at once.
	mostLookups = 100
)

// relist compares with the API what a wave has been waiting for without change. The graph may have
// missed that an object went, and the namespace would wait for it for ever.
func (p *pass) relist(ctx context.Context, step drain.Step) {
	if p.why != p.relisted.why {
		p.relisted = relisted{why: p.why, at: p.whyAt, pause: relistAfter}
	}
	if left := p.relisted.pause - time.Since(p.relisted.at); left > 0 {
		p.wake(p.ns.Name, "what it waits for is to be listed", left)
		return
	}
	p.relisted.at, p.relisted.pause = time.Now(), min(2*p.relisted.pause, mostRelist)
	p.wake(p.ns.Name, "what it waits for is to be listed", p.relisted.pause)
	looked := map[schema.GroupResource]bool{}
	for _, k := range p.state.Kinds {
		if k.Wave <= step.Wave && k.Total > 0 && p.followed.Has(k.Kind) && !looked[k.Kind] {
			looked[k.Kind] = true
			p.dispel(ctx, k.Kind)
		}
	}
}

// dispel tells the graph of objects of a kind that it has and the API does not. A list is not
// enough: it may be older than the object. A live read is.
func (p *pass) dispel(ctx context.Context, kind schema.GroupResource) {
	there := map[types.UID]bool{}
	err := p.Requester.List(ctx, kind, p.ns.Name, func(m *metav1.PartialObjectMetadata) { there[m.UID] = true })
	if err != nil {
		p.Log.V(1).Info("cannot list what is waited for", "namespace", p.ns.Name, "kind", kind.String(), "err", err.Error())
		return
	}
	var missing []graph.Ref
	for v := range p.Store.Content(p.ns.Name, kind) {
		if len(missing) == mostLookups {
			break
		}
		if !there[v.UID] {
			there[v.UID] = true // it may come twice
			missing = append(missing, v.Ref)
		}
	}
	p.each(len(missing), func(i int) {
		history := p.Store.History()
		if !p.Requester.IsGone(ctx, missing[i]) {
			return
		}
		p.Log.Info("object is gone, and its watch did not say so", "object", missing[i].String(), "uid", missing[i].UID)
		p.Store.Apply(graph.NotFound{Kind: kind, UID: missing[i].UID, History: history})
	})
}

// relisted is when what was waited for was last listed.
type relisted struct {
	why   string
	at    time.Time
	pause time.Duration // until the next time
}

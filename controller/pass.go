package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

// pass is one look at a namespace: what is counted, listed and tried in it.
type pass struct {
	*drainer
	*progress
	ns     *corev1.Namespace
	order  order
	marked bool // the namespace says which wave is under way, and since when
	state  drain.State
	// followed are the kinds that the graph counts.
	followed sets.Set[schema.GroupResource]
	live     map[part][]graph.Ref // what live lists found that is not terminating
	// early is what was there before the namespace was read; nil once it is used.
	early map[schema.GroupResource][]graph.View
}

// part is what goes of a kind with one wave.
type part struct {
	kind schema.GroupResource
	wave int
}

// count takes the counts of every kind from the graph.
func (p *pass) count() error {
	wave, since, err := p.place()
	if err != nil {
		return err
	}
	p.marked = !since.IsZero()
	p.state = drain.State{Waves: p.order.waves(), Current: wave, Undiscovered: p.undiscovered(), Companion: p.companion}
	if p.marked {
		p.state.Age = time.Since(since)
	}
	served := sets.New[schema.GroupResource]()
	p.followed = sets.New[schema.GroupResource]()
	for _, k := range p.store.stats().Kinds {
		if !k.Served || !k.Namespaced || !k.Deletable {
			continue
		}
		gr := k.GroupResource()
		served.Insert(gr)
		if k.State == graph.Synced {
			p.followed.Insert(gr)
		}
		waves := p.order.wavesOf(gr)
		if !k.Listable {
			waves = []int{p.order.waveOf(gr, nil)} // nobody can know their labels
		}
		for _, w := range waves {
			p.state.Kinds = append(p.state.Kinds, drain.Kind{Kind: gr, Wave: w, Blind: !k.Listable})
		}
	}
	p.state.Kinds = slices.DeleteFunc(p.state.Kinds, func(k drain.Kind) bool { return served.Has(twins[k.Kind]) })
	slices.SortFunc(p.state.Kinds, func(a, b drain.Kind) int {
		return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Wave, b.Wave))
	})
	inv := p.store.inventory(p.ns.Name)
	p.state.Finalizers = inv.Finalizers
	for kind := range p.followed {
		p.take(kind, inv, true)
	}
	return nil
}

// parts are what is known of a kind, by wave.
func (p *pass) parts(kind schema.GroupResource) []drain.Kind {
	i := slices.IndexFunc(p.state.Kinds, func(k drain.Kind) bool { return k.Kind == kind })
	if i < 0 {
		return nil
	}
	j := i + 1
	for j < len(p.state.Kinds) && p.state.Kinds[j].Kind == kind {
		j++
	}
	return p.state.Kinds[i:j]
}

func (p *pass) part(at part) *drain.Kind {
	parts := p.parts(at.kind)
	i := max(0, slices.IndexFunc(parts, func(k drain.Kind) bool { return k.Wave == at.wave }))
	return &parts[i]
}

// take takes over the counts that the graph has of a kind. Where labels decide about the wave, they are
// known from a live list; exact asks for a new one if the graph shows what that did not.
func (p *pass) take(kind schema.GroupResource, inv graph.Inventory, exact bool) {
	parts := p.parts(kind)
	for i := range parts {
		parts[i].Total, parts[i].Terminating, parts[i].Complete, parts[i].Listed = 0, 0, true, false
	}
	total := graph.KindCount{}
	if i := slices.IndexFunc(inv.Kinds, func(c graph.KindCount) bool { return c.Kind == kind }); i >= 0 {
		total = inv.Kinds[i]
	}
	if len(parts) == 1 {
		parts[0].Total, parts[0].Terminating = total.Total, total.Terminating
		return
	}
	if len(parts) == 0 || total.Total == 0 {
		return
	}
	for _, v := range p.store.content(p.ns.Name, kind) {
		s, known := p.sorted[kind][v.UID]
		if exact && (!known || s.version != v.ResourceVersion) {
			for i := range parts {
				parts[i].Complete = false
			}
			return
		}
		if !known {
			s.wave = parts[0].Wave // until it is known better, it holds up all
		}
		k := p.part(part{kind, s.wave})
		k.Total++
		if v.Deleting {
			k.Terminating++
		}
	}
}

// list reads kinds live, in parallel. What is found counts from here on.
func (p *pass) list(ctx context.Context, kinds []schema.GroupResource) {
	var mu sync.Mutex
	p.each(len(kinds), func(i int) {
		items, err := p.requester.list(ctx, kinds[i], p.ns.Name)
		mu.Lock()
		defer mu.Unlock()
		p.listed(kinds[i], items, err)
	})
}

func (p *pass) listed(kind schema.GroupResource, items []metav1.PartialObjectMetadata, err error) {
	parts := p.parts(kind)
	for i := range parts {
		k := &parts[i]
		k.Listed, k.Unreadable, k.Down = true, "", apierrors.IsServiceUnavailable(err)
		if err != nil {
			k.Unreadable = err.Error()
			continue
		}
		k.Total, k.Terminating, k.First = 0, 0, nil
		delete(p.live, part{kind, k.Wave})
	}
	if err != nil {
		return
	}
	p.sorted[kind] = nil
	if len(parts) > 1 {
		p.sorted[kind] = make(map[types.UID]sorted, len(items))
	}
	for i := range items {
		m := &items[i]
		at := part{kind, p.order.waveOf(kind, m.Labels)}
		k := p.part(at)
		if len(parts) > 1 {
			p.sorted[kind][m.UID] = sorted{m.ResourceVersion, at.wave}
		}
		k.Total++
		if m.DeletionTimestamp == nil {
			p.live[at] = append(p.live[at], graph.Ref{Kind: kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID})
		} else {
			k.Terminating++
		}
		if !p.followed.Has(kind) {
			for _, f := range m.Finalizers {
				p.state.Finalizers[f]++
			}
			first(k, m.Namespace, m.Name, m.DeletionTimestamp != nil, m.Finalizers)
		}
	}
}

// delete deletes what is there of some kinds and does not terminate yet, in parallel. Object by object
// with the uid, where the reference deletes collections: a refusal of one leaves the others alone, and
// nothing in a namespace of the same name that comes later can be hit.
//
// same is false if the namespace is gone or another by now. It is read after the objects were chosen:
// what was chosen before that was in it.
func (p *pass) delete(ctx context.Context, step drain.Step) (same bool, err error) {
	var refs []graph.Ref
	var blind []schema.GroupResource
	read := p.early == nil
	for _, kind := range step.Kinds {
		at := part{kind, step.Wave}
		k := p.part(at)
		k.Tried = true
		switch {
		case k.Blind:
			blind, read = append(blind, kind), true
		case k.Listed:
			refs, read = append(refs, p.live[at]...), true
		default:
			refs = append(refs, p.present(at)...)
		}
	}
	p.early = nil
	if read {
		ns, err := p.again(ctx, p.ns.Name, p.ns.UID)
		if ns == nil {
			return false, err
		}
		p.ns = ns
	}

	var mu sync.Mutex
	kept := 0
	p.each(len(refs)+len(blind), func(i int) {
		var kind schema.GroupResource
		var err error
		if i < len(refs) {
			kind, err = refs[i].Kind, p.requester.delete(ctx, refs[i], metav1.DeletePropagationBackground)
		} else {
			kind = blind[i-len(refs)]
			err = p.requester.deleteCollection(ctx, kind, p.ns.Name)
		}
		switch outcomeOf(err) {
		case ok, gone, stale, cancelled: // stale: another object has the name by now
			return
		case refused, failed, throttled:
		}
		mu.Lock()
		defer mu.Unlock()
		kept++
		if k := p.part(part{kind, step.Wave}); k.Refused == "" || err.Error() < k.Refused { // the same one each time
			k.Refused = err.Error()
		}
	})
	p.log.Info("deleted content", "namespace", p.ns.Name, "objects", len(refs)-kept, "refused", kept, "kinds", len(step.Kinds), "why", step.Why)
	p.show(ctx, step)
	return true, nil
}

// present are the objects that the graph has and that do not terminate yet.
func (p *pass) present(at part) []graph.Ref {
	views := p.early[at.kind]
	if p.early == nil {
		views = p.store.content(p.ns.Name, at.kind)
	}
	split := len(p.parts(at.kind)) > 1
	var refs []graph.Ref
	for _, v := range views {
		if !v.Deleting && (!split || p.sorted[at.kind][v.UID].wave == at.wave) {
			v.ResourceVersion = ""
			refs = append(refs, v.Ref)
		}
	}
	return refs
}

// show waits a moment for the graph to see what deletes did, and takes over its counts.
func (p *pass) show(ctx context.Context, step drain.Step) {
	timeout := time.NewTimer(showTime)
	defer timeout.Stop()
	for {
		changed := p.signal(p.ns.Name)
		if p.recount(step) {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			p.recount(step)
			return
		case <-ctx.Done():
			return
		}
	}
}

// recount takes the counts of kinds that the graph follows from it again, and tells whether all that is
// left of them terminates. Those that it does not follow have to be listed again.
func (p *pass) recount(step drain.Step) (settled bool) {
	inv := p.store.inventory(p.ns.Name)
	p.state.Finalizers = inv.Finalizers
	settled = true
	for _, kind := range step.Kinds {
		k := p.part(part{kind, step.Wave})
		if !p.followed.Has(kind) {
			k.Listed = false
			continue
		}
		p.take(kind, inv, false)
		settled = settled && (k.Total == k.Terminating || k.Refused != "")
	}
	return settled
}

// each calls f for 0 … n-1, as many at once as requests can be under way.
func (p *pass) each(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, int(p.requester.limiter.most)) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

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

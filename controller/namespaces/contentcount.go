package namespaces

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/words"
)

// count builds the state of the pass from the graph's counts.
func (p *pass) count() error {
	wave, since, err := p.place()
	if err != nil {
		return err
	}
	p.marked = !since.IsZero()
	p.state = drain.State{
		Waves: p.order.waves(), Current: wave, Companion: p.Companion, Home: p.Home != "" && p.ns.Name == p.Home,
	}
	p.state.Unrecorded = p.unrecorded()
	p.state.Discovered, p.state.DiscoveryFailure, _ = p.Watcher.Discoveries.Since(p.seen)
	p.state.Undiscovered = p.Watcher.Undiscovered()
	if p.marked {
		p.state.Age = p.age(since)
	}
	inv := p.Store.Inventory(p.ns.Name)
	holds := func(kind schema.GroupResource) bool {
		return slices.ContainsFunc(inv.Kinds, func(c graph.KindCount) bool { return c.Kind == kind })
	}
	served := sets.New[schema.GroupResource]()
	p.followed, p.split = sets.New[schema.GroupResource](), sets.New[schema.GroupResource]()
	for _, k := range p.Store.Stats().Kinds {
		if !k.Served || !k.Namespaced || !k.Deletable || !k.Listable {
			continue
		}
		gr := k.GroupResource()
		served.Insert(gr)
		waves := p.order.wavesOf(gr)
		switch {
		case k.State != graph.Synced:
		case len(waves) > 1 && holds(gr):
			p.split.Insert(gr)
		default:
			p.followed.Insert(gr)
		}
		for _, w := range waves {
			p.state.Kinds = append(p.state.Kinds, drain.Kind{Kind: gr, Wave: w, Complete: p.followed.Has(gr)})
		}
	}
	p.state.Kinds = slices.DeleteFunc(p.state.Kinds, func(k drain.Kind) bool { return served.Has(kinds.Twins[k.Kind]) })
	slices.SortFunc(p.state.Kinds, func(a, b drain.Kind) int {
		return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Wave, b.Wave))
	})
	p.recount()
	return nil
}

// recount takes the graph's counts for the kinds that it counts and that were not listed.
func (p *pass) recount() {
	inv := p.Store.Inventory(p.ns.Name)
	p.state.Finalizers = inv.Finalizers
	counts := map[schema.GroupResource]graph.KindCount{}
	for _, c := range inv.Kinds {
		counts[c.Kind] = c
	}
	for i := range p.state.Kinds {
		if k := &p.state.Kinds[i]; k.Complete && !k.Listed {
			k.Total, k.Terminating = counts[k.Kind].Total, counts[k.Kind].Terminating
		}
	}
}

// parts returns what is known of a kind, one Kind a wave.
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

// list lists kinds live, in parallel, and takes over what it finds.
func (p *pass) list(ctx context.Context, kinds []schema.GroupResource) {
	if slices.ContainsFunc(kinds, p.split.Has) {
		p.quiet = time.Now().Add(listEvery)
	}
	small := p.small()
	results := make([]struct {
		items []found
		err   error
	}, len(kinds))
	p.each(len(kinds), func(i int) {
		list := p.shared.alone
		if small.Has(kinds[i]) {
			list = p.shared.of
		}
		results[i].items, results[i].err = list(ctx, kinds[i], p.ns.Name, p.finding(kinds[i]))
	})
	for i, r := range results {
		p.listed(kinds[i], r.items, r.err)
	}
}

// found is what is kept of an object of a live list. The rest may be large, and is not for Weir to
// look at.
type found struct {
	ref        graph.Ref
	wave       int
	deleting   bool
	finalizers []string // set where the graph does not count the kind
}

// finding returns the function that extracts found from objects of a kind. It is called by
// whichever pass makes the list.
func (p *pass) finding(kind schema.GroupResource) keep {
	order, followed := p.order, p.followed.Has(kind)
	return func(m *metav1.PartialObjectMetadata) found {
		f := found{
			ref:  graph.Ref{Kind: kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion},
			wave: order.waveOf(kind, m.Labels), deleting: m.DeletionTimestamp != nil,
		}
		if !followed {
			f.finalizers = m.Finalizers
		}
		return f
	}
}

// small returns the kinds that have few objects in the whole cluster. Their lists may be shared.
func (p *pass) small() sets.Set[schema.GroupResource] {
	out := sets.New[schema.GroupResource]()
	for _, k := range p.Store.Stats().Kinds {
		if k.State == graph.Synced && k.Objects <= mostShared {
			out.Insert(k.GroupResource())
		}
	}
	return out
}

// listed takes over what a list has found, or why it failed.
func (p *pass) listed(kind schema.GroupResource, items []found, err error) {
	parts := p.parts(kind)
	for i := range parts {
		k := &parts[i]
		k.Listed, k.Unreadable = true, ""
		if err != nil {
			k.Unreadable = words.Cut(err.Error(), drain.MostReason)
			continue
		}
		k.Total, k.Terminating, k.First, k.Finalizers = 0, 0, nil, map[string]int{}
		delete(p.live, part{kind, k.Wave})
	}
	if err != nil {
		return
	}
	for i := range items {
		f := &items[i]
		at := part{kind, f.wave}
		k := p.part(at)
		k.Total++
		if f.deleting {
			k.Terminating++
		} else {
			f.ref.ResourceVersion = "" // it is deleted whatever it has become
			p.live[at] = append(p.live[at], f.ref)
		}
		if p.followed.Has(kind) {
			continue
		}
		first(k, f.ref.Namespace, f.ref.Name, f.deleting, f.finalizers)
		if !p.split.Has(kind) { // else the graph has counted them
			for _, finalizer := range f.finalizers {
				k.Finalizers[finalizer]++
			}
		}
	}
}

package namespaces

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

// delete deletes what is there of some kinds and does not terminate yet, in parallel. Object by object
// with the uid, where the reference deletes collections: a refusal of one leaves the others alone, and
// nothing in a namespace of the same name that comes later can be hit.
//
// same is false if the namespace is gone or another by now. It is read after the objects were chosen:
// what was chosen before that was in it.
func (p *pass) delete(ctx context.Context, step drain.Step) (same bool, err error) {
	refs, blind, read := p.choose(step)
	if read {
		ns, err := p.reread(ctx, p.ns.Name, p.ns.UID)
		if ns == nil {
			return false, err
		}
		p.ns = ns
	}

	var mu sync.Mutex
	kept := 0
	refusals := map[schema.GroupResource]*drain.Refusals{}
	keep := func(kind schema.GroupResource, name, why string) {
		kept++
		if refusals[kind] == nil {
			refusals[kind] = &drain.Refusals{}
		}
		refusals[kind].Add(name, why)
	}
	all := len(refs)
	refs = slices.DeleteFunc(refs, func(c chosen) bool {
		why, still := p.refused.still(c.Ref)
		if still {
			keep(c.Kind, c.Name, why)
		}
		return still
	})
	take := func(ref graph.Ref, err error) {
		refused := false
		switch request.OutcomeOf(err) {
		case request.OK, request.Gone, request.Stale, request.Cancelled: // stale: another object has the name by now
		case request.Refused, request.Failed, request.Throttled:
			refused = true
		}
		mu.Lock()
		defer mu.Unlock()
		if !refused {
			delete(p.refused, ref.UID)
			return
		}
		p.refused.note(ref, err.Error())
		keep(ref.Kind, ref.Name, err.Error())
	}
	p.each(len(refs), func(i int) { take(refs[i].Ref, p.deleteObject(ctx, refs[i])) })
	for _, kind := range blind {
		same, err := p.deleteUnseen(ctx, kind, func(err error) { take(graph.Ref{Kind: kind}, err) })
		if !same || err != nil {
			return same, err
		}
	}
	for kind, r := range refusals {
		p.part(part{kind, step.Wave}).Refused = r.String()
	}
	p.Log.Info("deleted content", "namespace", p.ns.Name, "objects", all-kept, "refused", kept, "kinds", len(step.Kinds), "why", step.Why)
	p.show(ctx, step)
	return true, nil
}

// choose chooses what there is to delete, and the kinds of which that cannot be known. read: the namespace is to be read after that.
func (p *pass) choose(step drain.Step) (refs []chosen, blind []schema.GroupResource, read bool) {
	read = p.early == nil
	for _, kind := range step.Kinds {
		at := part{kind, step.Wave}
		k := p.part(at)
		k.Tried = true
		switch {
		case k.Blind:
			blind = append(blind, kind)
		case k.Listed:
			refs, read = choose(refs, p.live[at], true), true
		default:
			refs = choose(refs, p.present(at), false)
		}
	}
	p.early = nil
	return refs, blind, read
}

// chosen is an object that is to be deleted, as a live list showed it or as the graph has it.
type chosen struct {
	graph.Ref
	listed bool
}

func choose(to []chosen, refs []graph.Ref, listed bool) []chosen {
	for _, ref := range refs {
		to = append(to, chosen{ref, listed})
	}
	return to
}

// deleteObject deletes an object, unless another client has done so since it was chosen: the collector, or who owned it. One that a live list
// showed and the graph does not have need not be gone: the watch may be late.
func (p *pass) deleteObject(ctx context.Context, c chosen) error {
	ref := c.Ref
	if p.followed.Has(ref.Kind) && p.Store.Deleted(ref.UID) {
		if _, there := p.Store.Find(ref.UID); there || !c.listed {
			return nil
		}
	}
	seen := ref
	ref.ResourceVersion = "" // it is to go, whatever it has become
	err := p.Requester.Delete(ctx, ref, metav1.DeletePropagationBackground)
	if err == nil {
		p.went.add(ref.Kind)
		p.Store.Accepted(graph.Action{Verb: graph.Delete, Object: seen})
	}
	return err
}

// deleteUnseen deletes what there is of a kind that cannot be listed: no uid can be named. The namespace is read
// right before and after. It cannot go meanwhile, because it carries Weir's finalizer, unless a client takes that
// off: then what another one of its name holds may be hit, and this is all that can be said of it.
func (p *pass) deleteUnseen(ctx context.Context, kind schema.GroupResource, took func(error)) (same bool, err error) {
	if ns, err := p.reread(ctx, p.ns.Name, p.ns.UID); ns == nil {
		return false, err
	}
	took(p.Requester.DeleteCollection(ctx, kind, p.ns.Name))
	ns, err := p.reread(ctx, p.ns.Name, p.ns.UID)
	if ns == nil && err == nil {
		p.Log.Info("a namespace went while what cannot be listed in it was deleted, and if another has its name by now, that may be hit",
			"namespace", p.ns.Name, "uid", p.ns.UID, "kind", kind.String())
	}
	return ns != nil, err
}

// present are the objects that the graph has and that do not terminate yet.
func (p *pass) present(at part) []graph.Ref {
	views := p.early[at.kind]
	if p.early == nil {
		views = p.Store.Content(p.ns.Name, at.kind)
	}
	split := len(p.parts(at.kind)) > 1
	var refs []graph.Ref
	for _, v := range views {
		if !v.Deleting && (!split || p.sorted[at.kind][v.UID].wave == at.wave) {
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
	inv := p.Store.Inventory(p.ns.Name)
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
func (d *Drainer) each(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, d.Requester.Limiter.Places()) {
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

package namespaces

import (
	"context"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
)

// mostChosen is how many objects are chosen at a time. A namespace may hold more than there is
// memory to copy.
const mostChosen = 10_000

// delete deletes the objects of some kinds that do not terminate yet, in parallel. It deletes
// object by object with the uid, where the reference deletes collections. So the refusal of one
// object leaves the others alone, and no object of a later namespace of the same name can be hit.
//
// same is false if the namespace is gone or was replaced. The namespace is read after objects were
// chosen: objects that were chosen before that were in it.
func (p *pass) delete(ctx context.Context, step drain.Step) (same bool, err error) {
	for _, kind := range step.Kinds {
		p.part(part{kind, step.Wave}).Tried = true
	}
	d := &deletes{pass: p, refusals: map[schema.GroupResource]*drain.Refusals{}}
	if same, err := d.send(ctx, p.choose(step)); !same || ctx.Err() != nil {
		return same, err // the caller sees that ctx ended, too
	}
	for kind, r := range d.refusals {
		p.part(part{kind, step.Wave}).Refused = r.String()
	}
	if d.refused == 0 {
		p.pause = 0
	} else {
		p.pause = max(refusedPause, min(2*p.pause, mostRefusedPause))
		p.quiet = time.Now().Add(p.pause)
	}
	p.Log.Info("deleted content", "namespace", p.ns.Name, "objects", d.accepted, "refused", d.refused,
		"kinds", len(step.Kinds), "why", step.Why)
	p.show(ctx, step)
	return true, nil
}

// show waits a moment for the graph to see what the deletes of a step did. The next pass would come
// too early to see that, and have to wait for a later one (`make bench`, 100 namespaces).
func (p *pass) show(ctx context.Context, step drain.Step) {
	for end := time.Now().Add(showTime); ctx.Err() == nil; <-time.After(settleTime) {
		p.recount()
		shown := true
		for _, kind := range step.Kinds {
			k := p.part(part{kind, step.Wave})
			if shown = shown && (!k.Complete || k.Total == k.Terminating); !k.Complete && !p.split.Has(kind) {
				k.Listed = false // it is listed again
			}
		}
		if shown || time.Now().After(end) {
			return
		}
	}
}

// deletes are the deletes of one step, and their refusals. The lock of the Drainer guards them.
type deletes struct {
	*pass
	accepted int // objects
	refused  int // objects
	refusals map[schema.GroupResource]*drain.Refusals
}

// send deletes the chosen objects, and returns when no delete is under way any more. The namespace
// is read after each choice. A slow delete does not hold up those chosen after it.
func (d *deletes) send(ctx context.Context, choices iter.Seq[[]chosen]) (same bool, err error) {
	var group errgroup.Group // none cancels the others
	defer func() { _ = group.Wait() }()
	group.SetLimit(d.Requester.Limiter.Places())
	for refs := range choices {
		ns, err := d.reread(ctx, d.ns.Name, d.ns.UID)
		if ns == nil {
			return false, err
		}
		d.ns = ns
		for _, c := range refs {
			group.Go(func() error {
				sent, err := d.deleteObject(ctx, c)
				d.take(c.Ref, sent, err)
				return nil
			})
		}
		if ctx.Err() != nil {
			break
		}
	}
	return true, nil
}

// take records the outcome of an object's delete, which may not have had to be sent.
func (d *deletes) take(ref graph.Ref, sent bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch request.OutcomeOf(err) {
	case request.OK, request.Gone, request.Stale, request.Cancelled: // Stale: another object has the name by now
		d.accepted++
		if sent && err == nil {
			d.went[ref.Kind]++
		}
	case request.Refused, request.Failed, request.Throttled:
		d.refused++
		if d.refusals[ref.Kind] == nil {
			d.refusals[ref.Kind] = &drain.Refusals{}
		}
		d.refusals[ref.Kind].Add(err.Error())
	}
}

// choose yields the objects to delete, at most mostChosen at a time. Objects that went meanwhile
// are not chosen any more.
func (p *pass) choose(step drain.Step) iter.Seq[[]chosen] {
	return func(yield func([]chosen) bool) {
		var refs []chosen
		for _, kind := range step.Kinds {
			at := part{kind, step.Wave}
			k := p.part(at)
			from := p.present(kind)
			if k.Listed {
				from = slices.Values(p.live[at])
			}
			for ref := range from {
				if refs = append(refs, chosen{ref, k.Listed}); len(refs) < mostChosen {
					continue
				}
				if !yield(refs) {
					return
				}
				refs = refs[:0]
			}
		}
		if len(refs) > 0 {
			yield(refs)
		}
	}
}

// chosen is an object to delete, as a live list showed it or as the graph has it.
type chosen struct {
	graph.Ref
	listed bool
}

// deleteObject deletes an object, unless the graph shows that another client, such as the
// collector, has deleted it since it was chosen. An object of a live list that the graph does not
// have need not be gone: the watch may be late.
func (p *pass) deleteObject(ctx context.Context, c chosen) (sent bool, err error) {
	ref := c.Ref
	if (p.followed.Has(ref.Kind) || p.split.Has(ref.Kind)) && p.Store.Deleted(ref.UID) {
		if _, there := p.Store.Find(ref.UID); there || !c.listed {
			return false, nil
		}
	}
	seen := ref
	ref.ResourceVersion = "" // it is deleted whatever it has become
	err = p.Requester.Delete(ctx, ref, metav1.DeletePropagationBackground)
	if err == nil {
		p.Store.Accepted(graph.Action{Verb: graph.Delete, Object: seen})
	}
	return true, err
}

// present yields the objects that the graph has and that do not terminate yet.
func (p *pass) present(kind schema.GroupResource) iter.Seq[graph.Ref] {
	return func(yield func(graph.Ref) bool) {
		for v := range p.Store.Content(p.ns.Name, kind) {
			if !v.Deleting && !yield(v.Ref) {
				return
			}
		}
	}
}

// each calls f for 0 … n-1, as many at once as requests may be under way.
func (d *Drainer) each(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(d.Requester.Limiter.Places())
	for i := range n {
		group.Go(func() error {
			f(i)
			return nil
		})
	}
	_ = group.Wait()
}

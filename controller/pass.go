package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
)

// pass is one look at a namespace: what is counted, listed and tried in it.
type pass struct {
	*drainer
	*progress
	ns    *corev1.Namespace
	state drain.State
	live  map[schema.GroupResource][]graph.Ref // what live lists found that is not terminating
}

// count takes the counts of every kind from the graph.
func (p *pass) count() {
	inv := p.store.inventory(p.ns.Name)
	counts := map[schema.GroupResource]graph.KindCount{}
	for _, k := range inv.Kinds {
		counts[k.Kind] = k
	}
	p.state = drain.State{Waves: drain.DefaultWaves(), Finalizers: inv.Finalizers, Undiscovered: p.undiscovered()}
	for _, k := range p.store.stats().Kinds {
		if !k.Served || !k.Namespaced || !k.Deletable {
			continue
		}
		c := counts[k.GroupResource()]
		p.state.Kinds = append(p.state.Kinds, drain.Kind{
			Kind: k.GroupResource(), Complete: k.State == graph.Synced, Blind: !k.Listable,
			Total: c.Total, Terminating: c.Terminating,
		})
	}
	slices.SortFunc(p.state.Kinds, func(a, b drain.Kind) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
}

func (p *pass) kind(kind schema.GroupResource) *drain.Kind {
	i := slices.IndexFunc(p.state.Kinds, func(k drain.Kind) bool { return k.Kind == kind })
	return &p.state.Kinds[i]
}

// list reads kinds live, in parallel. What is found counts from here on.
func (p *pass) list(ctx context.Context, kinds []schema.GroupResource) {
	var mu sync.Mutex
	p.each(len(kinds), func(i int) {
		items, err := p.requester.list(ctx, kinds[i], p.ns.Name)
		mu.Lock()
		defer mu.Unlock()
		k := p.kind(kinds[i])
		k.Listed, k.Unreadable = true, ""
		if err != nil {
			k.Unreadable = err.Error()
			return
		}
		if !k.Complete || len(items) > 0 { // the graph has not seen these, or not their end
			p.addFinalizers(items, k.Complete)
		}
		k.Total, k.Terminating = len(items), 0
		p.live[k.Kind] = nil
		for _, m := range items {
			if m.DeletionTimestamp != nil {
				k.Terminating++
				continue
			}
			p.live[k.Kind] = append(p.live[k.Kind], graph.Ref{Kind: k.Kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID})
		}
	})
}

// addFinalizers counts the finalizers of what a live list found, unless the graph counts the kind.
func (p *pass) addFinalizers(items []metav1.PartialObjectMetadata, counted bool) {
	if counted {
		return
	}
	for _, m := range items {
		for _, f := range m.Finalizers {
			p.state.Finalizers[f]++
		}
	}
}

// delete deletes what is there of some kinds and does not terminate yet, in parallel. Object by object
// with the uid, where the reference deletes collections: a refusal of one leaves the others alone, and
// nothing in a namespace of the same name that comes later can be hit.
//
// same is false if the namespace is gone or another by now. It is read after the objects were chosen:
// what was chosen before that was in it.
func (p *pass) delete(ctx context.Context, kinds []schema.GroupResource) (same bool, err error) {
	var refs []graph.Ref
	var blind []schema.GroupResource
	for _, kind := range kinds {
		k := p.kind(kind)
		k.Tried = true
		switch {
		case k.Blind:
			blind = append(blind, kind)
		case k.Listed:
			refs = append(refs, p.live[kind]...)
		default:
			for _, v := range p.store.content(p.ns.Name, kind) {
				if !v.Deleting {
					v.ResourceVersion = ""
					refs = append(refs, v.Ref)
				}
			}
		}
	}
	ns, err := p.again(ctx, p.ns.Name, p.ns.UID)
	if ns == nil {
		return false, err
	}
	p.ns = ns

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
		if k := p.kind(kind); k.Refused == "" || err.Error() < k.Refused { // the same one each time
			k.Refused = err.Error()
		}
	})
	p.log.Info("deleted content", "namespace", p.ns.Name, "objects", len(refs)-kept, "refused", kept, "kinds", len(kinds), "why", "the namespace is being deleted")
	p.show(ctx, kinds)
	return true, nil
}

// show waits a moment for the graph to see what deletes did, and takes over its counts.
func (p *pass) show(ctx context.Context, kinds []schema.GroupResource) {
	timeout := time.NewTimer(showTime)
	defer timeout.Stop()
	for {
		changed := p.signal(p.ns.Name)
		if p.recount(kinds) {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			p.recount(kinds)
			return
		case <-ctx.Done():
			return
		}
	}
}

// recount takes the counts of kinds that the graph follows from it again, and tells whether all that is
// left of them terminates.
func (p *pass) recount(kinds []schema.GroupResource) (settled bool) {
	inv := p.store.inventory(p.ns.Name)
	p.state.Finalizers = inv.Finalizers
	settled = true
	for _, kind := range kinds {
		k := p.kind(kind)
		if !k.Complete {
			continue
		}
		k.Total, k.Terminating, k.Listed = 0, 0, false
		for _, c := range inv.Kinds {
			if c.Kind == kind {
				k.Total, k.Terminating = c.Total, c.Terminating
			}
		}
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

// wait writes down what the namespace waits for, and says when to look again at the latest; a change of
// its content comes earlier.
func (p *pass) wait(ctx context.Context, step drain.Step) (time.Duration, error) {
	if left := conditionsAfter - time.Since(p.since); left > 0 {
		return left, nil
	}
	wanted := drain.Conditions(p.state, step)
	merged, changed := mergeConditions(p.ns.Status.Conditions, wanted)
	if !changed {
		return waiting, nil
	}
	if left := conditionsEvery - time.Since(p.written); left > 0 {
		return left, nil
	}
	p.written = time.Now()
	p.ns.Status.Conditions = merged
	_, err := p.namespaces.UpdateStatus(ctx, p.ns, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return waiting, fmt.Errorf("write conditions of namespace %s: %w", p.ns.Name, err)
	}
	p.log.Info("waiting", "namespace", p.ns.Name, "why", step.Why)
	return waiting, nil
}

// mergeConditions puts the wanted conditions over the present ones: others stay, and the time of a
// transition moves only with the status.
func mergeConditions(present, wanted []corev1.NamespaceCondition) (merged []corev1.NamespaceCondition, changed bool) {
	merged = slices.Clone(present)
	for _, w := range wanted {
		w.LastTransitionTime = metav1.Now()
		i := slices.IndexFunc(merged, func(c corev1.NamespaceCondition) bool { return c.Type == w.Type })
		if i < 0 {
			merged, changed = append(merged, w), true
			continue
		}
		if merged[i].Status == w.Status {
			w.LastTransitionTime = merged[i].LastTransitionTime
		}
		if merged[i] != w {
			merged[i], changed = w, true
		}
	}
	return merged, changed
}

package enforce

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// backFillPatience is for how long nothing about a failing kind may go well until this pass gives
// the kind up. One that is only slow is not.
const backFillPatience = time.Minute

// backFillPlaces is how many requests a pass has under way about a kind: few, since clients wait for
// what others do, and enough that it is done in minutes.
const backFillPlaces = 8

// backFillWait is for how long one request about a kind holds up other kinds.
const backFillWait = time.Second

// kindWork is what a pass does about one kind. Kinds are done one after the other, but a kind whose
// API or webhook fails goes on beside those that come after it, or is given up: the next pass tries
// it again.
type kindWork struct {
	group  errgroup.Group // of the objects that are changed
	others chan struct{}  // closed when others need not wait for this one
	once   sync.Once
	well   atomic.Int64 // when something went well the last time, in Unix nanoseconds
	giveUp context.CancelCauseFunc
}

// inTurn does the work of a kind, and returns when it is done, or others need not wait for it.
func (p *pass) inTurn(ctx context.Context, kind schema.GroupResource, do func(context.Context, *kindWork) error) {
	w := &kindWork{others: make(chan struct{})}
	w.group.SetLimit(backFillPlaces)
	w.well.Store(time.Now().UnixNano())
	within, giveUp := context.WithCancelCause(ctx)
	w.giveUp = giveUp
	done := make(chan struct{})
	p.kinds.Go(func() {
		defer close(done)
		defer giveUp(nil)
		err := do(within, w)
		_ = w.group.Wait() // its errors are in p.errs
		switch {
		case within.Err() != nil:
			p.gaveUp(kind, context.Cause(within))
		case err != nil:
			p.failed(kind, err)
		}
	})
	select {
	case <-done:
	case <-w.others:
	}
}

// send makes the change of one object.
func (p *pass) send(ctx context.Context, w *kindWork, kind schema.GroupResource, change func(context.Context) (finalizers.Result, error)) (result finalizers.Result, err error) {
	result = finalizers.Failed
	err = p.ask(ctx, w, "patch", kind, func(ctx context.Context) (err error) {
		result, err = change(ctx)
		return err
	})
	return result, err
}

// reader lists a kind page by page.
func (p *pass) reader(w *kindWork) *finalizers.Lister {
	return p.lister.Through(func(ctx context.Context, verb string, kind schema.GroupResource, ask func(context.Context) error) error {
		return p.ask(ctx, w, verb, kind, ask)
	})
}

// ask makes a request about the kind, if it takes the kind's patience. When the answer is late, or
// the kind fails, other kinds wait for this one no more.
func (p *pass) ask(
	ctx context.Context, w *kindWork, verb string, kind schema.GroupResource, do func(context.Context) error,
) error {
	beside := func() { w.once.Do(func() { close(w.others) }) }
	for {
		err := p.requests.Send(ctx, verb, kind, func(ctx context.Context) error {
			defer time.AfterFunc(backFillWait, beside).Stop()
			return do(ctx)
		})
		if err == nil {
			w.well.Store(time.Now().UnixNano())
		}
		if !request.IsBusy(err) {
			return err
		}
		beside()
		if time.Since(time.Unix(0, w.well.Load())) >= backFillPatience {
			w.giveUp(err)
			return err
		}
		if err := await.Pause(ctx, time.Second); err != nil { // it was not waited for, where many wait already
			return err
		}
	}
}

// patiently makes requests on which nothing waits, and waits for a failing kind for as long as
// back-fill does.
func patiently(r *request.Client) finalizers.Sender {
	return func(ctx context.Context, verb string, kind schema.GroupResource, ask func(context.Context) error) error {
		for began := time.Now(); ; {
			err := r.Send(ctx, verb, kind, ask)
			if !request.IsBusy(err) || time.Since(began) >= backFillPatience || await.Pause(ctx, time.Second) != nil {
				return err
			}
		}
	}
}

// takeRest takes the finalizer off what carries it, and no policy is about any more.
func (p *pass) takeRest(ctx context.Context, about map[schema.GroupResource]bool, versions map[schema.GroupResource]string) {
	rest := map[schema.GroupVersionResource][]*metav1.ObjectMeta{}
	for _, v := range p.store.Finalized(v1alpha1.Finalizer) {
		if !about[v.Kind] && !v.Deleting && versions[v.Kind] != "" {
			gvr := v.Kind.WithVersion(versions[v.Kind])
			rest[gvr] = append(rest[gvr], &metav1.ObjectMeta{
				Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: v.ResourceVersion, Finalizers: v.Finalizers,
				Annotations: map[string]string{v1alpha1.ArmedAtAnnotation: ""},
			})
		}
	}
	for gvr, objects := range rest {
		p.inTurn(ctx, gvr.GroupResource(), func(ctx context.Context, w *kindWork) error {
			for _, m := range objects {
				p.take(ctx, w, gvr, m)
			}
			return nil
		})
	}
}

// object brings one object in line. An error ends the look at its kind.
func (p *pass) object(ctx context.Context, w *kindWork, gvk schema.GroupVersionKind, gvr schema.GroupVersionResource, object map[string]any, m *metav1.ObjectMeta, of *listed) error {
	p.mu.Lock()
	p.looked++
	p.mu.Unlock()
	if m.DeletionTimestamp != nil {
		return ctx.Err()
	}
	namespace, err := namespaceOf(ctx, p.policies, m.Namespace)
	if err != nil {
		return fmt.Errorf("judge %s %s: %w", gvr.GroupResource(), nameIn(m), err)
	}
	mark, errs := p.set.FinalizersFor(policies.Stored(gvk, gvr, object, namespace))
	switch {
	case mark.By != "" && len(mark.Missing(m.Finalizers)) == 0:
		p.count(gvr.GroupResource(), mark.By, tally{1, 1}, of)
	case mark.By != "":
		p.count(gvr.GroupResource(), mark.By, tally{1, 0}, of)
		p.do(ctx, w, gvr.GroupResource(), func(ctx context.Context) (finalizers.Result, error) {
			result, err := p.writer.Put(ctx, gvr, m, mark)
			switch result {
			case finalizers.Done, finalizers.Already:
				p.count(gvr.GroupResource(), mark.By, tally{0, 1}, of)
			case finalizers.Gone:
				p.count(gvr.GroupResource(), mark.By, tally{-1, 0}, of)
			case finalizers.Changed, finalizers.Failed:
			}
			return result, err
		})
	case len(errs) == 0 && slices.Contains(m.Finalizers, v1alpha1.Finalizer):
		p.take(ctx, w, gvr, m)
	}
	return ctx.Err()
}

// namespaceOf is the Namespace that an object is in, read if the watch has not shown it yet:
// without it no policy that selects namespaces can be judged, and under Ignore an object that
// cannot be judged counts as one that no policy is about. nil: there is none.
func namespaceOf(ctx context.Context, p *live.State, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	return p.NamespaceNow(ctx, name)
}

// take takes the finalizer off an object that was judged as it is in m. One that has changed since
// may be wanted with the finalizer by now, and is for the next pass to judge.
func (p *pass) take(ctx context.Context, w *kindWork, gvr schema.GroupVersionResource, m *metav1.ObjectMeta) {
	p.do(ctx, w, gvr.GroupResource(), func(ctx context.Context) (finalizers.Result, error) { return p.writer.TakeUnchanged(ctx, gvr, m) })
}

// do changes an object when its turn has come. What waits for the pace has its time reserved, which
// is not given back when policies change: so one does, not all that wait for a place.
func (p *pass) do(ctx context.Context, w *kindWork, kind schema.GroupResource, change func(context.Context) (finalizers.Result, error)) {
	if p.pace.Wait(ctx) != nil {
		return // the pass is cut short, or the kind given up
	}
	p.mu.Lock()
	p.pending++
	p.waiting[kind]++
	p.metrics.backFill.WithLabelValues("pending").Set(float64(p.pending))
	p.mu.Unlock()
	w.group.Go(func() error {
		result, err := p.send(ctx, w, kind, change)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pending--
		p.waiting[kind]--
		if err == nil || ctx.Err() == nil { // or it was not even tried
			p.changed[result]++
		}
		if result == finalizers.Done && p.changed[finalizers.Done]%showEvery == 0 {
			p.publish(progress{tallies: p.totalsLocked(), speed: p.headwayLocked()})
		}
		p.metrics.backFill.WithLabelValues("pending").Set(float64(p.pending))
		if err != nil && ctx.Err() == nil {
			p.failedLocked(kind, err)
		}
		return nil
	})
}

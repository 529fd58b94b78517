package enforce

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies/finalizers"
)

// backFillPatience is for how long nothing about a kind in trouble may go well until this pass gives the kind up. One that is only slow
// is not.
const backFillPatience = time.Minute

// kindWork is what a pass does about one kind. Kinds are done one after the other, but a kind whose API or webhook is in trouble goes on
// beside those that come after it, or is given up: the next pass tries it again.
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
	// As many again wait as may be under way: a place that comes free is taken at once.
	w.group.SetLimit(2 * p.requests.Limiter.SparePlaces())
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
			p.gaveUp(context.Cause(within))
		case err != nil:
			p.failed(err)
		}
	})
	select {
	case <-done:
	case <-w.others:
	}
}

// send makes the change of one object when nothing else is to be done.
func (p *pass) send(ctx context.Context, w *kindWork, kind schema.GroupResource, change func(context.Context) (finalizers.Result, error)) (result finalizers.Result, err error) {
	if err := p.pace.Wait(ctx); err != nil {
		return finalizers.Failed, err
	}
	for {
		result = finalizers.Failed
		err = p.requests.Spare(ctx, "patch", kind, func(ctx context.Context) (err error) {
			result, err = change(ctx)
			return err
		})
		if err == nil {
			w.well.Store(time.Now().UnixNano())
		}
		if !request.IsBusy(err) {
			return result, err
		}
		w.once.Do(func() { close(w.others) })
		if time.Since(time.Unix(0, w.well.Load())) >= backFillPatience {
			w.giveUp(err)
			return finalizers.Failed, err
		}
	}
}

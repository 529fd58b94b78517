package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// gonePatience is more than a fail-over takes, and more than one kind waits while others go.
const gonePatience = 3 * time.Minute

// Gone runs act, which sets things off, and waits until objects of several kinds are gone, in
// whatever namespaces they are. It tells ended when each of them was seen to go, one at a time. It
// costs a list, of one object, and a watch for each kind.
func Gone(ctx context.Context, cfg *rest.Config, objects map[Kind][]Object, ended func(time.Time), act func(context.Context) error) (Result, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return Result{}, fmt.Errorf("follow several kinds: %w", err)
	}
	var mu sync.Mutex
	result := Result{}
	began := time.Now()
	f := several{}
	for kind, of := range objects {
		one := &follow{in: client.Resource(kind.GVR()), pending: map[types.UID]bool{}, patience: gonePatience}
		for _, o := range of {
			one.pending[o.UID] = false
		}
		one.ended = func(at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			if result.First == 0 {
				result.First = at.Sub(began)
			}
			result.Took = max(result.Took, at.Sub(began))
			ended(at)
		}
		result.Dependents += len(of)
		f = append(f, one)
	}
	if err := f.begin(ctx); err != nil {
		return Result{}, fmt.Errorf("follow several kinds: %w", err)
	}
	began = time.Now()
	err = f.measure(ctx, act)
	return result, err
}

// several are watches of several kinds.
type several []*follow

func (s several) begin(ctx context.Context) error {
	return Each(ctx, len(s), func(ctx context.Context, i int) error { return s[i].begin(ctx) })
}

func (s several) measure(ctx context.Context, act func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for _, f := range s {
		group.Go(func() {
			if err := f.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	if err := act(ctx); err != nil {
		cancel(err)
	}
	group.Wait()
	return context.Cause(ctx)
}

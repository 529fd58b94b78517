package follow

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

// watched is namespaces of which nothing can be done but to watch them.
type watched struct {
	metadata.ResourceInterface
	watch func(context.Context) (watch.Interface, error)
}

func (w watched) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	return w.watch(ctx)
}

// A tether tells of each loss of contact once, and there is one at a time.
func TestATetherTellsOnceThatItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, lost := 0, 0
		var last *watch.FakeWatcher
		k := &tether{lost: func() { lost++ }, namespaces: watched{watch: func(context.Context) (watch.Interface, error) {
			begun++
			last = watch.NewFake()
			return last, nil
		}}}
		for range 3 {
			if err := k.hold(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(tetherFor)
		if begun != 1 || lost != 0 {
			t.Errorf("%d watches were begun and %d lost, want one that is held", begun, lost)
		}
		last.Stop()
		synctest.Wait()
		if lost != 1 || k.held.Load() {
			t.Errorf("told %d times that it has ended, held: %t", lost, k.held.Load())
		}
		if err := k.hold(t.Context()); err != nil || begun != 2 {
			t.Errorf("it is not taken up again: %d were begun, %v", begun, err)
		}
		last.Stop()
		k.wg.Wait()
	})
}

// TestATetherThatComesLateIsNone: the connection that counts is one that was there when it was
// asked for, and soon.
func TestATetherThatComesLateIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		after    time.Duration
		onItsWay bool  // it is answered although it was given up
		err      error // from the API server
		want     error
	}{
		"at once":       {},
		"in time":       {after: probeTimeout - 1},
		"too late":      {after: time.Hour, onItsWay: true, want: context.DeadlineExceeded},
		"not at all":    {after: time.Hour, want: context.Canceled},
		"it is refused": {err: errors.ErrUnsupported, want: errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *watch.FakeWatcher
				k := &tether{lost: func() {}, namespaces: watched{watch: func(ctx context.Context) (watch.Interface, error) {
					select {
					case <-time.After(c.after):
					case <-ctx.Done():
						if !c.onItsWay {
							return nil, ctx.Err()
						}
					}
					if c.err != nil {
						return nil, c.err
					}
					w = watch.NewFake()
					return w, nil
				}}}
				err := k.hold(t.Context())
				if !errors.Is(err, c.want) || (err == nil) != k.held.Load() {
					t.Errorf("%v, held: %t; want %v", err, k.held.Load(), c.want)
				}
				if w != nil && w.IsStopped() != (c.want != nil) {
					t.Errorf("the watch has ended: %t", w.IsStopped())
				}
				if w != nil {
					w.Stop()
				}
				k.wg.Wait()
			})
		})
	}
}

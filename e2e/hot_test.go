//go:build full

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestObjectThatIsWrittenAllTheTimeIsDeleted: a client annotates it 100 times a
// second, so that each decision is about a version that is old soon.
func TestObjectThatIsWrittenAllTheTimeIsDeleted(t *testing.T) {
	t.Parallel()
	const most = 20
	for name, policy := range map[string]metav1.DeletionPropagation{"background": background, "foreground": foreground} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.make(`
				cm boss
				cm leaf  owners=(boss!block)
			`)
			ctx, stop := context.WithCancel(t.Context())
			writes := make(chan int)
			go func() { writes <- w.keepWriting(ctx, "leaf") }()
			w.until("it is written", func(context.Context) (bool, error) {
				return w.get("leaf").GetAnnotations()["n"] > "2", nil
			})
			began := time.Now()
			w.delete("boss", policy)
			w.awaitGone("leaf", "boss")
			took := time.Since(began)
			stop()
			t.Logf("gone after %s, while it was written %d times", took, <-writes)
			if took > 5*time.Second {
				t.Errorf("it was gone after %s", took)
			}
			w.awaitRequests(weirUser, "delete", 1, "leaf")
			have, sum := w.requests(weirUser, "leaf"), 0
			for _, n := range have {
				sum += n
			}
			if t.Logf("requests: %v", have); sum > most {
				t.Errorf("%d requests about it, want at most %d: %v", sum, most, have)
			}
		})
	}
}

// keepWriting writes an object every 10 ms until it is gone, and returns how often it
// did.
func (w *fixture) keepWriting(ctx context.Context, name string) (times int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	o := w.made[name]
	for {
		select {
		case <-ctx.Done():
			return times
		case <-tick.C:
		}
		_, err := w.at(o).Patch(ctx, o.name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, times), metav1.PatchOptions{})
		switch {
		case err == nil:
			times++
		case apierrors.IsNotFound(err), ctx.Err() != nil:
			return times
		default:
			w.Error(err)
			return times
		}
	}
}

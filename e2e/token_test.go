package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// The token that the webhook's paths begin with is replaced while requests flow that a policy with
// Fail is about: none of them may meet a path that is not taken any more, or not yet.
func TestTokenIsReplacedWhileRequestsFlow(t *testing.T) {
	t.Parallel()
	w, _ := newPaired(t, replace, plane.Options{Controllers: plane.WithoutCollectors})
	w.make("cm one")
	w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {maxDependents: 100}
  failurePolicy: Fail`)
	flow := w.beginDeletes("one")
	before := w.webhookToken()
	if written := w.tokenWritten(); written != before {
		t.Fatalf("the configurations have another token than the Secret")
	}
	if err := w.typed.CoreV1().Secrets(metav1.NamespaceSystem).Delete(t.Context(), "weir-webhook-token", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the configurations have another token", func(context.Context) (bool, error) { return w.tokenWritten() != before, nil })
	flow.until(w, "requests go on under it", flow.sent()+100)
	flow.end()
	for _, err := range flow.failed {
		t.Error(err)
	}
	secret, err := w.typed.CoreV1().Secrets(metav1.NamespaceSystem).Get(t.Context(), "weir-webhook-token", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(secret.Data["token"]) != w.tokenWritten() {
		t.Errorf("the Secret does not have the token that is written: %v", err)
	}
	t.Logf("%d deletes", flow.sent())
}

// deletes are sent one after the other, as dry runs.
type deletes struct {
	end func()

	mu     sync.Mutex
	n      int
	failed []error
}

// beginDeletes sends deletes of a ConfigMap until it is told to end.
func (w *fixture) beginDeletes(name string) *deletes {
	ctx, cancel := context.WithCancel(w.Context())
	d := &deletes{}
	var sending sync.WaitGroup
	sending.Go(func() {
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
			err := w.typed.CoreV1().ConfigMaps(w.namespace).Delete(ctx, w.of(name).name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			if ctx.Err() != nil {
				return
			}
			d.mu.Lock()
			d.n++
			if err != nil && len(d.failed) < 10 {
				d.failed = append(d.failed, err)
			}
			d.mu.Unlock()
		}
	})
	d.end = func() { cancel(); sending.Wait() }
	w.Cleanup(d.end)
	return d
}

func (d *deletes) sent() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n
}

// until waits until so many were sent.
func (d *deletes) until(w *fixture, what string, n int) {
	w.Helper()
	w.until(what, func(context.Context) (bool, error) { return d.sent() >= n, nil })
}

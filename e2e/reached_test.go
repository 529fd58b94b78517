//go:build full

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestALeaderIsReadyOnceTheWebhookWasAsked: so helm install --wait is over when policies are
// enforced, and not before. Who follows is ready, so that a rollout goes on; so is a leader that
// has seen the webhook be asked, whatever comes later. There is no policy.
func TestALeaderIsReadyOnceTheWebhookWasAsked(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{replace, companion} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, plane.Options{})
			if err := installCRDs(t.Context(), w.plane); err != nil {
				t.Fatal(err)
			}
			port, err := plane.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			url := fmt.Sprintf("https://localhost:%d", port)
			first := w.electable(m, "first", url)
			w.until("it leads, and says what it waits for", func(ctx context.Context) (bool, error) {
				if first.Ready(ctx) == nil {
					return false, errors.New("it is ready, and the API server does not reach the webhook")
				}
				err := first.Enforced(ctx)
				return err != nil && strings.Contains(err.Error(), "the API server does not reach weir's webhook") && strings.Contains(err.Error(), "connection refused"), nil
			})
			second := w.electable(m, "second", url)
			if err := second.AwaitReady(t.Context()); err != nil {
				t.Errorf("who follows is not ready: %v", err)
			}

			hook := w.runWeir(hookOptions(w.plane, w.kubeconfigOf(hookUser), "hook", url, port))
			if err := first.AwaitReady(t.Context()); err != nil {
				t.Errorf("the webhook is there: %v", err)
			}
			if out, code := w.doctor(w.plane.Kubeconfig, "--webhook"); code != 0 || !strings.Contains(out, "asks weir's webhook, and is answered") {
				t.Errorf("weir doctor --webhook, which helm test runs: exit code %d of %s", code, out)
			}
			out, _ := w.doctor(w.plane.Kubeconfig)
			w.mustFind(out, "ok webhook…the API server asks weir's webhook, and is answered")
			back := w.killed(hook)
			w.until("an outage is seen", reachable(first, 0))
			if out, code := w.doctor(w.plane.Kubeconfig, "--webhook"); code != 1 || !strings.Contains(out, "connection refused") {
				t.Errorf("the same while the webhook is away: exit code %d of %s", code, out)
			}
			out, _ = w.doctor(w.plane.Kubeconfig)
			w.mustFind(out, "problem webhook…connection refused")
			if err := first.Ready(t.Context()); err != nil {
				t.Errorf("an outage makes the leader unready: %v", err)
			}
			back()

			if err := syscall.Kill(first.Pid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			w.until("who followed leads, and has the webhook asked", reachable(second, 1))
			if err := second.Ready(t.Context()); err != nil {
				t.Errorf("who leads now: %v", err)
			}
		})
	}
}

// electable launches a controller that leads while it holds the Lease.
func (w *fixture) electable(m mode, name, url string) *weir.Process {
	w.Helper()
	p, err := weir.Launch(context.WithoutCancel(w.Context()), weir.Options{
		Binary: shared.binary, Kubeconfig: w.kubeconfigOf(weirUser), Dir: w.plane.Dir, Name: name, LeaderElect: true,
		Flags: []string{"--mode", string(m), "--webhook-url", url, "--self-users", weirUser + "," + hookUser},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Kill)
	return p
}

// reachable tells whether the metric of a controller says so, 1 or 0.
func reachable(p *weir.Process, want float64) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		m, err := p.Metrics(ctx)
		return err == nil && m.Has("weir_webhook_reachable") && m.Sum("weir_webhook_reachable") == want, nil //nolint:nilerr // it may not serve yet
	}
}

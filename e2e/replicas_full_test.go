//go:build full

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// replica is one of a webhook.
type replica struct {
	*weir.Process
	host string
}

// newReplicated is a cluster of its own with weir's controller and two replicas of its webhook. What
// is between these and the API server does what a Service does: new connections go to replicas that
// are ready, in turns, without one to any, and those that there are stay where they are.
func newReplicated(t *testing.T, m mode, o plane.Options) (*fixture, []replica) {
	t.Helper()
	w := newCluster(t, o)
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	balancer, err := plane.NewBalancer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	balancer.Strict = true
	url, kubeconfig := "https://"+balancer.Host("localhost"), w.kubeconfigOf(hookUser)
	var replicas []replica
	for i := range 2 {
		port, err := plane.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		hook := w.runWeir(hookOptions(w.plane, kubeconfig, fmt.Sprintf("hook-%d", i), url, port, "--shutdown-delay", "3s"))
		replicas = append(replicas, replica{hook, fmt.Sprintf("127.0.0.1:%d", port)})
	}
	// As often as kubelets and the endpoints controller are, taken together, at their best.
	follow := func(ctx context.Context) (bool, error) {
		var all, ready []string
		for _, r := range replicas {
			all = append(all, r.host)
			if r.Ready(ctx) == nil {
				ready = append(ready, r.host)
			}
		}
		if len(ready) == 0 {
			ready = all
		}
		balancer.New(ready...)
		return false, nil
	}
	_, _ = follow(t.Context())
	go func() { _ = wait.PollUntilContextCancel(t.Context(), time.Second, false, follow) }() // until the test ends
	if w.weir, err = startController(context.WithoutCancel(t.Context()), w.plane, m, url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.weir.Kill)
	w.hook, w.mode = replicas[0].Process, m
	return w, replicas
}

// asked is how many reviews it has answered since it started.
func (r replica) asked(t *testing.T) float64 {
	t.Helper()
	m, err := r.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.Sum("weir_webhook_requests_total") - m.Sum("weir_webhook_requests_total", "webhook", canaryHook)
}

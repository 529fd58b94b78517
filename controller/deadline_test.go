package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/live"
)

// TestNoClientWaitsForEver: whatever is asked of an API server that does not answer ends, but for
// watches.
func TestNoClientWaitsForEver(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Controller) error{
		"a namespace": func(ctx context.Context, c *Controller) error {
			_, err := c.drainer.Namespaces.Get(ctx, "shop", metav1.GetOptions{})
			return err
		},
		"the conditions of a namespace": func(ctx context.Context, c *Controller) error {
			_, err := c.drainer.Namespaces.UpdateStatus(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.UpdateOptions{})
			return err
		},
		"the Leases of API servers": func(ctx context.Context, c *Controller) error {
			_, err := c.drainer.Leases.Leases("kube-system").List(ctx, metav1.ListOptions{})
			return err
		},
		"an Event": func(_ context.Context, c *Controller) error {
			_, err := c.clients.open.CoreV1().Events("").CreateWithEventNamespaceWithContext(context.Background(), &corev1.Event{})
			return err
		},
		"an object that is shaped": func(ctx context.Context, c *Controller) error {
			c.requester.Serve(fixture.Kinds)
			_, _, err := c.requester.GetFull(ctx, graph.Ref{Kind: fixture.ConfigMaps, Namespace: "shop", Name: "web"})
			return err
		},
		"content of a namespace": func(ctx context.Context, c *Controller) error {
			c.requester.Serve(fixture.Kinds)
			return c.requester.List(ctx, fixture.ConfigMaps, "shop", func(*metav1.PartialObjectMetadata) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := &rest.Config{Host: "http://api.test", Transport: fixture.Tripper(fixture.Hang)}
				c, err := New(Options{Config: config, Namespaces: 1, Policies: &live.State{}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err = ask(ctx, c)
				if took := time.Since(began); err == nil || took > 2*request.Timeout {
					t.Errorf("%v after %s", err, took)
				}
				c.close()
			})
		})
	}
}

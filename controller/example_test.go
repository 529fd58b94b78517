package controller_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller"
)

// A Controller follows the cluster as long as the process runs; its work begins when it leads.
func ExampleNew() {
	c, err := controller.New(controller.Options{Config: &rest.Config{Host: "https://api.example.com"}, Namespaces: controller.DefaultNamespaceSyncs})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	stop() // when the process is to end
	var parts errgroup.Group
	parts.Go(func() error { return c.Follow(ctx) })
	parts.Go(func() error { return c.Lead(ctx) }) // once a Lease is held
	fmt.Println(parts.Wait(), c.Ready())
	// Output:
	// <nil> waiting for discovery
}

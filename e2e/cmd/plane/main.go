// Command plane runs a Kubernetes control plane on this machine until Ctrl-C,
// or builds the parts of one.
//
//	go run ./cmd/plane --controllers='*' --scheduler --kwok
//	go run ./cmd/plane build [part ...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "plane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "build" {
		return build(ctx, args[1:])
	}
	var opts plane.Options
	flags := flag.NewFlagSet("plane", flag.ExitOnError)
	controllers := flags.String("controllers", "", "controllers of kube-controller-manager; empty runs none")
	flags.BoolVar(&opts.Scheduler, "scheduler", false, "run kube-scheduler")
	flags.BoolVar(&opts.Kwok, "kwok", false, "add a node whose pods only say that they run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	opts.Controllers = plane.Controllers(*controllers)
	opts.Out = os.Stderr

	started := time.Now()
	p, err := plane.Start(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "plane: ready in %.1f s, Ctrl-C ends it\n", time.Since(started).Seconds())
	fmt.Printf("export KUBECONFIG=%s\n", p.Kubeconfig)
	<-ctx.Done()
	return p.Stop()
}

func build(ctx context.Context, names []string) error {
	parts := plane.Parts
	if len(names) > 0 {
		parts = nil
	}
	for _, name := range names {
		part, err := plane.ParsePart(name)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	bins, err := plane.Build(ctx, os.Stderr, parts...)
	if err != nil {
		return err
	}
	for _, part := range parts {
		fmt.Println(bins[part])
	}
	return nil
}

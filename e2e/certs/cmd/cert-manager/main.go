// Command cert-manager runs cert-manager's own controllers against a cluster that has its kinds,
// until SIGTERM: tests need it, and there is no image of it here. It issues from Issuers that sign
// with a CA, or with nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-dev/weir/e2e/certs/certmanager"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "cluster to work in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	wait, err := certmanager.Start(ctx, *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
	wait()
}

// Package certmanager runs the controllers of cert-manager that issue certificates from Issuers, in
// this process.
package certmanager

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/go-logr/logr"

	// The controllers of cert-manager that a Certificate of an Issuer takes. Each makes itself
	// known.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// controllers is how many of them there are to be: one that an update of cert-manager renames must
// not go missing.
const controllers = 10

// Start runs cert-manager's own controllers until ctx ends; wait returns once they have.
func Start(ctx context.Context, kubeconfig string) (wait func(), err error) {
	ctx = logr.NewContext(ctx, logr.Discard())
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "default"},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Second, CertificateRequestMaximumBackoffDuration: time.Second,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start cert-manager: %w", err)
	}
	var running []controller.Interface
	for name, make := range controller.Known() {
		c, err := make(factory)
		if err != nil {
			return nil, fmt.Errorf("start cert-manager's %s: %w", name, err)
		}
		running = append(running, c)
	}
	if len(running) != controllers {
		return nil, fmt.Errorf("start cert-manager: it has %d controllers here, want %d", len(running), controllers)
	}
	shared, err := factory.Build("informers")
	if err != nil {
		return nil, fmt.Errorf("start cert-manager's informers: %w", err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	var wg sync.WaitGroup
	for c := range slices.Values(running) {
		wg.Go(func() { _ = c.Run(2, ctx) }) // the only error is that ctx ended before the start
	}
	return wg.Wait, nil
}

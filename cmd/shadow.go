package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// compare runs shadow mode: only the collector, which changes nothing. There are no policies and no
// webhook.
func (f *controllerFlags) compare(ctx context.Context) error {
	if f.set() || f.policyFlags.dir != "" {
		return errors.New("--mode shadow changes nothing, and has neither policies nor a webhook: leave --policy-dir, " +
			"--webhook-service and --webhook-url out")
	}
	b, err := beginWithoutPolicies(ctx, &f.clusterFlags, &f.processFlags)
	if err != nil {
		return err
	}
	c, err := f.controller(b, nil, nil, false)
	if err != nil {
		return err
	}
	m := newManagement(b.config, &f.processFlags, &f.collectorFlags)
	if err := m.collect(b, c); err != nil {
		return err
	}
	l, err := listenLocally()
	if err != nil {
		return err
	}
	b.log.Info("kubectl weir shadow reads what is compared", "url", "http://"+l.Addr().String())
	m.serveLocally(l, c.ShadowHandler())
	return m.run(ctx)
}

// listenLocally listens at the address that kubectl weir shadow asks, or at another port if that is
// taken: a machine may run several. It is a loopback address, because clients are not
// authenticated.
func listenLocally() (net.Listener, error) {
	l, err := net.Listen("tcp", report.Address)
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("serve kubectl weir shadow: %w", err)
	}
	return l, nil
}

// serveLocally serves the report to programs on this machine, and to users who may forward a port
// of the pod.
func (m *management) serveLocally(l net.Listener, found http.Handler) {
	mux := http.NewServeMux()
	mux.Handle(report.Path, found)
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	m.follow("shadow", func(ctx context.Context) error { return serveOn(ctx, "kubectl weir shadow", l, server) })
}

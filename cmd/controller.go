package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/certs"
	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/policies/live"
)

// controllerFlags are those of weir controller.
type controllerFlags struct {
	clusterFlags
	processFlags
	collectorFlags
	policyFlags
	targetFlags
}

func (f *controllerFlags) check() error {
	return errors.Join(f.processFlags.check(), f.collectorFlags.check(), f.policyFlags.check(), f.targetFlags.check())
}

func controllerCommand() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the collector",
		Long: `Run the collector, and what enforces policies but the webhook. In replace mode the cluster's kube-controller-manager
must run with --controllers=*,-garbage-collector-controller,-namespace-controller, or not at all. In companion mode it does
the collecting, and weir only what policies ask for.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runController(ctrl.SetupSignalHandler(), &f) },
	}
	fs := cmd.Flags()
	f.clusterFlags.register(fs)
	f.processFlags.register(fs)
	f.collectorFlags.register(fs, true)
	f.policyFlags.register(fs)
	f.targetFlags.register(fs)
	return cmd
}

// runController wires the parts and stays until ctx ends, at a signal, or until the Lease is lost.
func runController(ctx context.Context, f *controllerFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	log := f.logger()
	config, err := f.restConfig()
	if err != nil {
		return err
	}
	if err := reach(config); err != nil {
		return err
	}
	state, err := f.state(ctx, config, &f.targetFlags, log)
	if err != nil {
		return err
	}
	var source certs.Source
	if f.set() {
		if source, err = f.trusting(ctx, config, false, log); err != nil {
			return err
		}
	}
	c, err := f.controller(config, state, source, log)
	if err != nil {
		return err
	}
	m := newManagement(config, &f.processFlags, &f.collectorFlags)
	m.graph = c.GraphHandler()
	m.follow("policies", state.Run)
	m.follow("graph", c.Follow)
	m.lead(c.Lead)
	if source != nil {
		m.follow("certificates", source.Start)
	}
	m.ready("policies", state.Ready)
	m.ready("graph", c.Ready)
	return m.run(ctx)
}

// controller makes the collector. Without a source nobody has the API server call the webhook.
func (f *controllerFlags) controller(config *rest.Config, state *live.State, source certs.Source, log logr.Logger) (*controller.Controller, error) {
	o := controller.Options{
		Config: config, Concurrency: f.concurrency, Ignored: f.ignored(), Namespaces: f.namespaceSyncs(), Companion: f.mode == modeCompanion,
		Policies: state, BackFillQPS: f.backFillQPS, Registry: metrics.Registry, Log: log,
	}
	if source != nil {
		o.Webhooks = f.target(source)
	}
	c, err := controller.New(o)
	if err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	return c, nil
}

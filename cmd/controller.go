package cmd

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/controller"
)

func controllerCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the collector",
		Long: `Run the collector. In replace mode the API server's cluster must run kube-controller-manager with
--controllers=*,-garbage-collector-controller, or none at all.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return run(ctrl.SetupSignalHandler(), &f) },
	}
	f.register(cmd.Flags(), true)
	return cmd
}

func upCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of weir in one process, for a workstation or a small control plane",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return run(ctrl.SetupSignalHandler(), &f) },
	}
	f.register(cmd.Flags(), false)
	return cmd
}

// run wires the parts and stays until ctx ends, at a signal, or until the Lease is lost.
func run(ctx context.Context, f *flags) error {
	if err := f.check(); err != nil {
		return err
	}
	log := newLogger(f)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client"))
	config, err := f.restConfig()
	if err != nil {
		return err
	}
	config.UserAgent = "weir/" + version
	if err := reach(config); err != nil {
		return err
	}
	c, err := controller.New(controller.Options{
		Config: config, Concurrency: f.concurrency, Ignored: f.ignored(), Namespaces: f.namespaceSyncs(), Registry: metrics.Registry, Log: log,
	})
	if err != nil {
		return err
	}
	mgr, err := newManager(config, f, c)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config, f *flags, c *controller.Controller) (manager.Manager, error) {
	serving := metricsserver.Options{
		BindAddress: f.metricsAddress, SecureServing: f.metricsSecure,
		ExtraHandlers: map[string]http.Handler{controller.GraphPath: c.GraphHandler()},
	}
	if f.metricsSecure {
		serving.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	namespace := f.leaderElectNamespace
	if namespace == "" && !inCluster() {
		namespace = "kube-system"
	}
	renew := f.leaseDuration * 2 / 3
	retry := f.leaseDuration / 7
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: serving, HealthProbeBindAddress: f.healthAddress,
		LeaderElection: f.leaderElect, LeaderElectionID: "weir-controller", LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &f.leaseDuration, RenewDeadline: &renew, RetryPeriod: &retry,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	for _, r := range []manager.Runnable{follower{c}, leader{c}} {
		if err := mgr.Add(r); err != nil {
			return nil, fmt.Errorf("add to the manager: %w", err)
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add a health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("graph", func(*http.Request) error { return c.Ready() }); err != nil {
		return nil, fmt.Errorf("add a readiness check: %w", err)
	}
	return mgr, nil
}

// follower and leader are the two halves of the collector as the manager runs them: every replica keeps
// a warm graph, one works.
type (
	follower struct{ *controller.Controller }
	leader   struct{ *controller.Controller }
)

func (f follower) Start(ctx context.Context) error { return f.Follow(ctx) }
func (follower) NeedLeaderElection() bool          { return false }
func (l leader) Start(ctx context.Context) error   { return l.Lead(ctx) }
func (leader) NeedLeaderElection() bool            { return true }

// reach says at once if the API server cannot be talked to: a wrong kubeconfig should not look like a
// slow start.
func reach(config *rest.Config) error {
	quick := rest.CopyConfig(config)
	quick.Timeout = 10 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(quick)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	if _, err := client.ServerVersion(); err != nil {
		return fmt.Errorf("reach the API server at %s: %w", config.Host, err)
	}
	return nil
}

func inCluster() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

func newLogger(f *flags) logr.Logger {
	return zap.New(zap.UseDevMode(f.logFormat == "text"), zap.Level(zapcore.Level(-f.verbosity)),
		zap.StacktraceLevel(zapcore.DPanicLevel), func(o *zap.Options) { o.TimeEncoder = zapcore.RFC3339NanoTimeEncoder })
}

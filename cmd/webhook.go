package cmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/certs"
	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/webhook"
)

// serverFlags are the flags of the webhook's server.
type serverFlags struct {
	address       string
	armingWindow  time.Duration
	shutdownDelay time.Duration
	clientCA      string
}

// testArmingWindow is a flag for tests, whose API server needs less time for DELETEs.
const testArmingWindow = "test-arming-window"

func (f *serverFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "webhook-bind-address", ":9443", "address of the webhook's server")
	forTests(fs, testArmingWindow, &f.armingWindow, webhook.DefaultArmingWindow)
	fs.DurationVar(&f.shutdownDelay, "shutdown-delay", 5*time.Second,
		"how long requests are served on after a signal, until clients have stopped sending")
	fs.StringVar(&f.clientCA, "webhook-client-ca", "",
		"file with the CA of those who may connect to the webhook: for API servers that have a kubeconfig for admission "+
			"webhooks, with a client certificate; default: everybody")
}

func (f *serverFlags) check() error {
	w := wrong{checkAddress("--webhook-bind-address", f.address, "HOST:PORT")}
	w.unless(f.shutdownDelay >= 0 && f.shutdownDelay <= 5*time.Minute, "--shutdown-delay %s: must be between 0 and 5m",
		f.shutdownDelay)
	if f.clientCA != "" { // it is read again later; this reports a mistake at once
		_, err := webhook.NewClients(f.clientCA)
		w.unless(err == nil, "--webhook-client-ca: %w", err)
	}
	return errors.Join(w...)
}

// webhookFlags are the flags of weir webhook.
type webhookFlags struct {
	weirFlags
	serverFlags
}

func (f *webhookFlags) check() error {
	w := wrong{f.processFlags.check(), f.policyFlags.check(), f.targetFlags.check(), f.serverFlags.check()}
	w.unless(f.set() || f.certificates == certificatesFiles,
		"set --webhook-service or --webhook-url: the certificate is made for that address")
	return errors.Join(w...)
}

func webhookCommand() *cobra.Command {
	var f webhookFlags
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Run the admission webhook",
		Long: `Run the admission webhook, as often as you like: replicas know nothing of each other. Which
requests come to it is for weir controller to say, which writes the webhook configurations.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runWebhook(ctrl.SetupSignalHandler(), &f) },
	}
	f.weirFlags.register(cmd.Flags())
	f.serverFlags.register(cmd.Flags())
	return cmd
}

func runWebhook(ctx context.Context, f *webhookFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	defer ballast()()
	b, err := f.begin(ctx)
	if err != nil {
		return err
	}
	// The kinds of the cluster, and its objects, are followed only once a policy asks about them.
	c, err := controller.NewFollowing(controller.Options{Config: b.config, Policies: b.state, Log: b.log,
		Registry: metrics.Registry})
	if err != nil {
		return fmt.Errorf("set up the graph: %w", err)
	}
	m := newManagement(b.config, &f.processFlags, nil)
	m.follow("policies", b.state.Run)
	objects := func() bool { return b.state.Set().NeedsGraph() }
	kinds := func() bool { return objects() || b.state.Set().NeedsKinds() }
	m.follow("graph", func(ctx context.Context) error { return followNeeded(ctx, b.state, objects, kinds, c) })
	m.ready("policies", b.state.Ready)
	m.ready("graph", once(func() error {
		if err := b.state.Ready(); err != nil {
			return err
		}
		switch {
		case objects():
			return c.Ready()
		case kinds():
			return c.KindsReady()
		}
		return nil
	}))
	source := f.source(b.config, false, b.log)
	token := f.tokens(b.config, false, b.log)
	// The check holds only at the start. Later, a new certificate or token is served only once it
	// is trusted everywhere.
	trust := once(trusted(b.config, source, token.Takes, b.log)) //nolint:contextcheck // a probe has a time of its own
	m.ready("trust", trust)
	ctx, err = f.serve(ctx, m, b, c.Facts(), cmp.Or(f.home(), metav1.NamespaceSystem), source, token)
	if err != nil {
		return err
	}
	return m.run(ctx)
}

// once returns a check that, once it has passed, passes for good. When the first policy asks for
// the graph, all replicas begin to fill theirs. If they were not ready meanwhile, no policy would
// have a webhook. For what is not known yet, the policies' failurePolicy decides.
func once(check func() error) func() error {
	var held atomic.Bool
	return func() error {
		if held.Load() {
			return nil
		}
		err := check()
		if err == nil {
			held.Store(true)
		}
		return err
	}
}

// following is a cluster that can be followed; *controller.Following is one.
type following interface {
	Follow(ctx context.Context) error
	FollowKinds(ctx context.Context, all <-chan struct{}) error
}

// followNeeded follows the cluster once a policy asks about it. While policies ask only which kinds
// there are, it follows the kinds alone, because every write to the cluster would be an event.
func followNeeded(ctx context.Context, state *live.State, objects, kinds func() bool, c following) error {
	return whenNeeded(ctx, state, kinds, func(ctx context.Context) error {
		if objects() {
			return c.Follow(ctx)
		}
		all := make(chan struct{})
		ctx, end := context.WithCancel(ctx)
		var asked error
		var wg sync.WaitGroup
		wg.Go(func() {
			asked = whenNeeded(ctx, state, objects, func(context.Context) error {
				close(all)
				return nil
			})
		})
		err := c.FollowKinds(ctx, all)
		end()
		wg.Wait()
		return errors.Join(err, asked)
	})
}

// whenNeeded calls do once needed reports true, which a change of the policies may bring about.
func whenNeeded(ctx context.Context, state *live.State, needed func() bool, do func(context.Context) error) error {
	for {
		changed := state.Changed()
		if needed() {
			return do(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// endTime is how long a server that ends still answers reviews under way. API servers wait no
// longer for one.
const endTime = 30 * time.Second

// serve adds the server to the parts of a process. The process must run until the returned context
// ends, which is --shutdown-delay after ctx: until then the server still answers, but is not ready.
// canary is the namespace of the canary, which tells who collects; "" if that is not watched.
func (f *serverFlags) serve(
	ctx context.Context, m *management, b *begun, facts policies.Facts, canary string,
	source certs.Source, token *certs.Token,
) (context.Context, error) {
	collector, err := whoCollects(b, canary)
	if err != nil {
		return nil, err
	}
	tell, record, err := webhookEvents(b.config)
	if err != nil {
		return nil, err
	}
	m.follow("events", record)
	handler, err := webhook.New(webhook.Options{
		Config: b.config, Policies: b.state, Facts: facts, Collector: collector, Takes: token.Takes,
		Sealed: token.Sealed, Seal: token.Seal, ArmingWindow: f.armingWindow, Tell: tell, Registry: metrics.Registry,
		Log: b.log.WithName("webhook"),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the webhook: %w", err)
	}
	var ending atomic.Bool
	over, err := f.over(m, source)
	if err != nil {
		return nil, err
	}
	handled := webhook.Leaving(handler, ending.Load)
	server, err := serverAt("webhook", f.address, webhook.NewServer(handled, webhook.MostStrangers), over, endTime)
	if err != nil {
		return nil, err
	}
	m.runnables = append(m.runnables, server)
	m.follow("certificates", source.Start)
	m.certificate = source.GetCertificate
	m.follow("token", token.Start)
	m.ready("certificate", func() error {
		_, err := source.GetCertificate(nil)
		return err
	})
	if err := metrics.Registry.Register(expiryOf(source)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := tellBuild("webhook"); err != nil {
		return nil, err
	}
	m.ready("running", func() error {
		if ending.Load() {
			return errors.New("shutting down")
		}
		return nil
	})
	return f.untilAnswered(ctx, b, &ending), nil
}

// untilAnswered returns a context that ends --shutdown-delay after ctx. In between, ending is set.
func (f *serverFlags) untilAnswered(ctx context.Context, b *begun, ending *atomic.Bool) context.Context {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		ending.Store(true)
		b.log.Info("shutting down: requests are answered for some time yet", "delay", f.shutdownDelay.String())
		time.AfterFunc(f.shutdownDelay, end)
	})
	return longer
}

// over returns the TLS configuration of the server: its certificate, and which clients may connect.
func (f *serverFlags) over(m *management, source certs.Source) (*tls.Config, error) {
	over := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: source.GetCertificate}
	if f.clientCA == "" {
		return over, nil
	}
	clients, err := webhook.NewClients(f.clientCA)
	if err != nil {
		return nil, fmt.Errorf("--webhook-client-ca: %w", err)
	}
	clients.Require(over)
	m.follow("client CA", clients.Start)
	return over, nil
}

// expiryOf returns the metric of when the certificate expires; 0 while there is none.
func expiryOf(source certs.Source) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_webhook_certificate_expiry_timestamp_seconds", Help: "When the certificate expires that the webhook " +
			"serves with.",
	}, func() float64 {
		if at, ok := source.Expiry(); ok {
			return float64(at.Unix())
		}
		return 0
	})
}

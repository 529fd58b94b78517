package cmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/controller/leases"
	"github.com/weir-dev/weir/internal/tools/release"
)

// management runs the parts of a process: those of every replica, those of the leader, and the
// servers of health, metrics and pages.
type management struct {
	config  *rest.Config
	process *processFlags
	leading *collectorFlags // nil if there is no leader
	elected *leases.Lease   // the leader's Lease; nil if there is no other process to wait for

	// certificate is the webhook's, under which metrics are served, too, so that its CA verifies
	// both; nil if there is none.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	runnables   []manager.Runnable
	checks      map[string]func() error
}

func newManagement(config *rest.Config, p *processFlags, leading *collectorFlags) *management {
	m := &management{config: config, process: p, leading: leading, checks: map[string]func() error{}}
	m.follow("memory", tidy)
	return m
}

// follow adds a part that every replica runs from the beginning.
func (m *management) follow(name string, run func(context.Context) error) {
	m.runnables = append(m.runnables, part{name: name, run: run})
}

// lead adds a part that only the leader runs.
func (m *management) lead(run func(context.Context) error) {
	m.runnables = append(m.runnables, part{name: "leader", run: run, leads: true})
}

// collect adds the collector, and the policies that it enforces.
func (m *management) collect(b *begun, c *controller.Controller) error {
	if b.state != nil {
		m.follow("policies", b.state.Run)
		m.ready("policies", b.state.Ready)
	}
	m.elect(b.elected)
	m.follow("graph", c.Follow)
	m.lead(c.Lead)
	m.ready("graph", c.Ready)
	return tellBuild("controller")
}

// ready adds a check to /readyz.
func (m *management) ready(name string, check func() error) { m.checks[name] = check }

// part implements manager.Runnable.
type part struct {
	name  string
	run   func(context.Context) error
	leads bool
}

func (p part) NeedLeaderElection() bool { return p.leads }

func (p part) Start(ctx context.Context) error {
	if err := p.run(ctx); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// run runs all parts until ctx ends, one fails, or the Lease is lost.
func (m *management) run(ctx context.Context) error {
	mgr, err := ctrl.NewManager(m.config, m.options())
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	for _, r := range m.runnables {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("add to the manager: %w", err)
		}
	}
	if err := m.listen(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

var errLeaseTaken = errors.New("another process has taken the leader's Lease: it was deleted or edited, or this " +
	"process stood still")

// elect has the process wait for the leader's Lease, and end when another has taken it. nil stands
// for no Lease.
func (m *management) elect(lease *leases.Lease) {
	m.elected = lease
	if lease == nil {
		return
	}
	m.follow("leader", func(ctx context.Context) error {
		select {
		case <-lease.Taken():
			return errLeaseTaken
		case <-ctx.Done():
			return nil
		}
	})
}

func (m *management) options() ctrl.Options {
	// listen serves instead.
	o := ctrl.Options{Metrics: metricsserver.Options{BindAddress: noAddress}, HealthProbeBindAddress: noAddress}
	if m.elected != nil {
		// leader_election_master_status has this ID as its label.
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionResourceLockInterface = true, release.LeaseName, m.elected
		renew, retry := m.leading.renewFor(), m.leading.leaseDuration/7
		o.LeaderElectionReleaseOnCancel = true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = &m.leading.leaseDuration, &renew, &retry
	}
	return o
}

// listen adds the servers of health probes and of metrics.
func (m *management) listen(mgr manager.Manager) error {
	p := m.process
	if p.healthAddress != noAddress {
		if err := port(mgr, "health probes", p.healthAddress, probes(m.checks), nil); err != nil {
			return err
		}
	}
	if p.metricsAddress == noAddress {
		return nil
	}
	handler, err := servedMetrics(mgr, p.metricsSecure)
	if err != nil {
		return err
	}
	over, err := m.metricsTLS()
	if err != nil {
		return err
	}
	return port(mgr, "metrics", p.metricsAddress, handler, over)
}

// metricsTLS returns nil if metrics are not served over TLS. While the webhook has no certificate
// they are served under a self-signed one: metrics matter most while something is wrong.
func (m *management) metricsTLS() (*tls.Config, error) {
	if !m.process.servesMetrics() {
		return nil, nil
	}
	var own tls.Certificate
	crt, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{{127, 0, 0, 1}}, nil, "")
	if err == nil {
		own, err = tls.X509KeyPair(crt, key)
	}
	if err != nil {
		return nil, fmt.Errorf("make a certificate for metrics: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if m.certificate != nil {
				if pair, err := m.certificate(hello); err == nil {
					return pair, nil
				}
			}
			return &own, nil
		}}, nil
}

// leaseNamespace returns the namespace of the leader's Lease; "" for weir's own.
func (f *collectorFlags) leaseNamespace() string {
	if f.leaderElectNamespace == "" && !inCluster() {
		return "kube-system"
	}
	return f.leaderElectNamespace
}

// canaryNamespace returns the namespace of the canary, which tells whether another garbage
// collector works; "" if that is not watched.
func (f *controllerFlags) canaryNamespace() string {
	if f.beside {
		return ""
	}
	return cmp.Or(f.leaseNamespace(), f.home(), metav1.NamespaceSystem)
}

// reach asks the API server for its version. It fails soon if there is no connection: a wrong
// kubeconfig should not look like a slow start.
func reach(ctx context.Context, config *rest.Config) (*apiversion.Info, error) {
	quick := rest.CopyConfig(config)
	quick.Timeout = 10 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(quick)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	var info *apiversion.Info
	_ = wait.PollUntilContextTimeout(ctx, reachEvery, reachFor, true, func(context.Context) (bool, error) {
		info, err = serverVersion(ctx, client.RESTClient())
		return !starting(err), nil
	}) // err says more
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) { // its text alone may be "unknown"
		return nil, fmt.Errorf("reach the API server at %s: %w (HTTP status %d %s)", config.Host, err, status.Status().Code,
			status.Status().Reason)
	}
	if err != nil {
		return nil, fmt.Errorf("reach the API server at %s: %w", config.Host, err)
	}
	return info, nil
}

// serverVersion reads the version. Unlike the client's own method, it ends with ctx.
func serverVersion(ctx context.Context, client rest.Interface) (*apiversion.Info, error) {
	body, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var info apiversion.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return nil, fmt.Errorf("read its version: %w", err)
	}
	return &info, nil
}

// reachFor is how long an API server that has just started may take to load its roles. Until then
// it refuses requests that everybody may make.
const reachFor, reachEvery = 15 * time.Second, 250 * time.Millisecond

// starting reports whether an error may come from an API server that has just started.
func starting(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err)
}

// election returns the leader's Lease; nil if there is none.
func (f *collectorFlags) election(config *rest.Config, log logr.Logger) (*leases.Lease, error) {
	if !f.leaderElect || f.mode == modeShadow {
		return nil, nil
	}
	namespace := cmp.Or(f.leaseNamespace(), podNamespace())
	if namespace == "" {
		return nil, errors.New("--leader-elect needs --leader-elect-namespace here: the pod has no ServiceAccount token " +
			"that tells its namespace")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name to hold the leader's Lease by: %w", err)
	}
	// Its client has a timeout, so that a request that hangs does not lose the Lease.
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, release.LeaseName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, rest.CopyConfig(config),
		f.renewFor())
	if err != nil {
		return nil, fmt.Errorf("make a client for the leader's Lease: %w", err)
	}
	return leases.New(lock, f.leaseDuration/15, log), nil
}

// renewFor returns for how long a leader tries to renew its Lease before it ends. It is less than
// others wait.
func (f *collectorFlags) renewFor() time.Duration { return f.leaseDuration * 2 / 3 }

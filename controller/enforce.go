package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/stamps"
)

// enforcement is what the leader does for policies: it has the API server ask Weir, stamps what is there already, carries
// out deletions, and says on the policies how far all that is.
type enforcement struct {
	policies     *live.State
	shaper       *shaper
	backFill     *backFill
	configurator *configurator // nil: nobody knows where the webhook is
	canary       *canary       // nil as well
	status       *statusWriter
	census       *census
	log          logr.Logger
}

func newEnforcement(o Options, config *rest.Config, client *http.Client, s *store, r *requester, rep *reporter, undiscovered func() []string) (*enforcement, error) {
	m, err := newEnforcementMetrics(o.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	lister, err := stamps.NewLister(config)
	if err != nil {
		return nil, err
	}
	guarded := rest.CopyConfig(config)
	guarded.Wrap(func(next http.RoundTripper) http.RoundTripper { return &guard{next: next, history: r.history} })
	stamper, err := stamps.New(guarded)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for policies: %w", err)
	}
	e := &enforcement{policies: o.Policies, log: o.Log}
	e.shaper = newShaper(s, r, o.Policies, rep, m, !o.Companion, o.Log)
	e.backFill = newBackFill(s, lister, stamper, r, o.Policies, o.BackFillQPS, m, o.Log)
	e.census = newCensus(s, lister, o.Policies, o.Log)
	e.status = &statusWriter{client: dyn, census: e.census, tell: rep.policy, policies: o.Policies, served: func() *served { return servedNow(s, undiscovered()) }, backFill: e.backFill, metrics: m, log: o.Log}
	if o.Webhooks != nil {
		admission, err := typedadmissionregistrationv1.NewForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("make a client for webhook configurations: %w", err)
		}
		leases, err := typedcoordinationv1.NewForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("make a leases client: %w", err)
		}
		core, err := typedcorev1.NewForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("make a client for namespaces and the webhook's Service: %w", err)
		}
		if o.Webhooks.CanaryNamespace != "" {
			knocker := &knocker{target: o.Webhooks, services: core, port: servicePort}
			e.canary = newCanary(leases.Leases(o.Webhooks.CanaryNamespace), knocker.knock, rep.reached, m, o.Log)
			e.status.canary = e.canary
		}
		e.configurator = &configurator{client: admission, namespaces: core.Namespaces(), policies: o.Policies, target: o.Webhooks, kept: s.kept, canary: e.canary, log: o.Log}
	}
	return e, nil
}

// run enforces until ctx ends.
func (e *enforcement) run(ctx context.Context) {
	if !e.awaitPolicies(ctx) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { e.shaper.run(ctx) })
	wg.Go(func() { e.backFill.run(ctx) })
	wg.Go(func() { e.status.run(ctx) })
	wg.Go(func() { e.census.run(ctx) })
	if e.configurator != nil {
		wg.Go(func() { e.configurator.run(ctx) })
		if e.canary != nil {
			wg.Go(func() { e.canary.run(ctx) })
		}
	} else if e.policies.Set().Asks() {
		e.log.Info("policies are not enforced at the API server: neither --webhook-service nor --webhook-url says where the webhook is")
	}
	wg.Wait()
}

// awaitPolicies waits until it is known which policies there are: without them all stamps would come off.
func (e *enforcement) awaitPolicies(ctx context.Context) bool {
	for e.policies.Ready() != nil {
		select {
		case <-ctx.Done():
			return false
		case <-e.policies.Changed():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return true
}

// enforcementMetrics are what enforcement counts.
type enforcementMetrics struct {
	policies        *prometheus.GaugeVec
	policy          *prometheus.GaugeVec
	backFill        *prometheus.GaugeVec
	backFillSuccess prometheus.Gauge
	shaping         prometheus.Gauge
	shaped          *prometheus.CounterVec
	reachable       *prometheus.GaugeVec
}

func newEnforcementMetrics(reg prometheus.Registerer) (*enforcementMetrics, error) {
	m := &enforcementMetrics{
		policies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_policies", Help: "Policies, by state: broken ones are not in force, and their status says why; of files, the log does, also of what is no policy at all."}, []string{"state"}),
		policy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_policy", Help: "1 for each policy, by source, object or file, and state as in weir_policies: policies that are files show nowhere else in the cluster."}, []string{"kind", "name", "source", "state"}),
		backFill: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_backfill_objects", Help: "Objects that back-fill looks after, by state: stamped as policies ask, pending their turn, failed in the last pass."}, []string{"state"}),
		backFillSuccess: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_backfill_last_success_timestamp_seconds", Help: "When back-fill was last complete."}),
		shaping: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_shaping_waiting", Help: "Terminating objects that weir holds until their deletion goes as policies say."}),
		shaped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_shaped_total", Help: "Deletions that weir has shaped, by result: done, and failed attempts."}, []string{"result"}),
		reachable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_webhook_reachable", Help: "1 while the API server asks the webhook and is answered, 0 while not, with the reason: that of the condition Enforced. Tried every 20 s; absent while it cannot be tried, and where there is no webhook configuration."}, []string{"reason"}),
	}
	m.shaped.WithLabelValues("done") // a rate is seen only of what was there before
	m.shaped.WithLabelValues("failed")
	for _, state := range []string{"stamped", "pending", "failed"} {
		m.backFill.WithLabelValues(state)
	}
	for _, c := range []prometheus.Collector{m.policies, m.policy, m.backFill, m.backFillSuccess, m.shaping, m.shaped, m.reachable} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

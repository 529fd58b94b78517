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
	status       *statusWriter
	log          logr.Logger
}

func newEnforcement(o Options, config *rest.Config, client *http.Client, s *store, r *requester, rep *reporter) (*enforcement, error) {
	m, err := newEnforcementMetrics(o.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	lister, err := stamps.NewLister(config)
	if err != nil {
		return nil, err
	}
	stamper, err := stamps.New(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for policies: %w", err)
	}
	if o.BackFillQPS <= 0 {
		o.BackFillQPS = DefaultBackFillQPS
	}
	e := &enforcement{policies: o.Policies, log: o.Log}
	e.shaper = newShaper(s, r, lister, stamper, o.Policies, rep, m, o.Log)
	e.backFill = newBackFill(s, lister, stamper, o.Policies, o.BackFillQPS, m, o.Log)
	e.status = &statusWriter{client: dyn, policies: o.Policies, backFill: e.backFill, metrics: m, log: o.Log}
	if o.Webhooks != nil {
		admission, err := typedadmissionregistrationv1.NewForConfigAndClient(config, client)
		if err != nil {
			return nil, fmt.Errorf("make a client for webhook configurations: %w", err)
		}
		e.configurator = &configurator{client: admission, policies: o.Policies, target: o.Webhooks, log: o.Log}
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
	if e.configurator != nil {
		wg.Go(func() { e.configurator.run(ctx) })
	} else if len(e.policies.Set().Webhooks()) > 0 {
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
	backFill        *prometheus.GaugeVec
	backFillSuccess prometheus.Gauge
	shaping         prometheus.Gauge
	shaped          *prometheus.CounterVec
}

func newEnforcementMetrics(reg prometheus.Registerer) (*enforcementMetrics, error) {
	m := &enforcementMetrics{
		policies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_policies", Help: "Policies, by state: broken ones are not in force, and their status says why; of files, the log does, also of what is no policy at all."}, []string{"state"}),
		backFill: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_backfill_objects", Help: "Objects that back-fill looks after, by state: stamped as policies ask, pending their turn, failed in the last pass."}, []string{"state"}),
		backFillSuccess: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_backfill_last_success_timestamp_seconds", Help: "When back-fill was last complete."}),
		shaping: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_shaping_waiting", Help: "Terminating objects that weir holds until their deletion goes as policies say."}),
		shaped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_shaped_total", Help: "Deletions that weir has shaped, by result: done, and failed attempts."}, []string{"result"}),
	}
	for _, c := range []prometheus.Collector{m.policies, m.backFill, m.backFillSuccess, m.shaping, m.shaped} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

package enforce

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/controller/undo"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
)

// Enforcer is what the leader does for policies: it has the API server call Weir, adds the
// finalizer to existing objects, carries out deletions, and writes the status of policies.
type Enforcer struct {
	policies   *live.State
	propagator *propagator
	backFill   *backFill
	// These are nil if it is not known where the webhook is.
	configurator *configurator
	canary       *canary
	inProcess    *inProcess
	status       *statusWriter
	log          logr.Logger
}

// Options are the options of New.
type Options struct {
	Config    *rest.Config
	Kube      kubernetes.Interface // of Config
	Dynamic   dynamic.Interface    // of Config
	Store     *follow.Store
	Watcher   *follow.Watcher
	Requester *request.Client
	Reporter  *events.Reporter
	Policies  *live.State
	Webhooks  *WebhookTarget // nil: another process writes the webhook configurations
	// Collects: this process carries out the graph's decisions. Otherwise the built-in collector
	// collects.
	Collects bool
	// Drains: this process drains namespaces: all of them if it collects, otherwise those that a
	// DrainPolicy selects.
	Drains bool
	// Brake holds deletions with which more would be deleted than a policy allows.
	Brake Brake
	// Archive records what is deleted, where a policy asks for it; nil: nothing is held for that.
	Archive *undo.Recorder
	// FilesIn is the namespace in which policies that are files are reported; empty: they are not.
	FilesIn  string
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Brake holds requested deletions until a person decides.
type Brake interface {
	// Requested reports whether a deletion is held with which goes objects would also be deleted,
	// where a policy allows most.
	Requested(o graph.Ref, by string, most, goes int) (held bool)
	// Ended is called with an object that need not be held any more.
	Ended(uid types.UID)
}

// New returns an Enforcer. It sends nothing.
func New(o Options) (*Enforcer, error) {
	s, r, m := o.Store, o.Requester, newMetrics(o.Registry)
	limited := rest.CopyConfig(o.Config)
	limited.Wrap(request.Unretried)
	lister, err := finalizers.NewLister(limited)
	if err != nil {
		return nil, err
	}
	guarded := rest.CopyConfig(limited)
	guarded.Wrap(r.History.Guard)
	writer, err := finalizers.New(guarded, o.Policies.Now)
	if err != nil {
		return nil, err
	}
	e, now := &Enforcer{policies: o.Policies, propagator: newPropagator(o, m), log: o.Log}, &board{}
	e.backFill = newBackFill(s, lister, writer, r, o.Policies, now, m, o.Log)
	e.status = &statusWriter{client: o.Dynamic, board: now, policies: o.Policies, drains: drainsOf(o),
		served: func() served { return servedNow(s, o.Watcher.Undiscovered()) }, metrics: m, log: o.Log}
	if o.FilesIn != "" {
		e.status.files = &fileReport{maps: o.Kube.CoreV1().ConfigMaps(o.FilesIn), namespace: o.FilesIn}
	}
	if o.Webhooks != nil {
		e.configure(o, now, m)
	} else {
		now.update(func(s *snapshot) { s.asked.seen = notConfigured })
	}
	return e, nil
}

// configure prepares what has the API server call the webhook, and finds out whether it does.
func (e *Enforcer) configure(o Options, now *board, m *metrics) {
	admission, leases := o.Kube.AdmissionregistrationV1(), o.Kube.CoordinationV1()
	namespace := o.Webhooks.CanaryNamespace
	e.canary = newCanary(namespace, leases, now, o.Reporter.Enforced, m, o.Log)
	e.configurator = &configurator{client: admission, namespaces: o.Kube.CoreV1().Namespaces(), policies: o.Policies,
		target: o.Webhooks, kept: func() []schema.GroupResource { return selectable(o.Store) }, canary: e.canary,
		log: o.Log}
	e.inProcess = &inProcess{client: admission, version: o.Kube.Discovery(),
		leases: leases.Leases(namespace), namespace: namespace, owners: e.configurator.owners, policies: o.Policies,
		board: now, off: o.Webhooks.InProcessOff, overlap: o.Webhooks.InProcessOverlap, log: o.Log}
}

// Terminating is called with every object that is seen to terminate, when the graph has it.
func (e *Enforcer) Terminating(m *metav1.PartialObjectMetadata) { e.propagator.terminating(m) }

// Requeue has the deletion of an object decided about again.
func (e *Enforcer) Requeue(uid types.UID) { e.propagator.requeue(uid) }

// Reached returns nil once the API server has called the webhook and got an answer, for good, and
// where that is not tried. Before that it returns what stands in the way.
func (e *Enforcer) Reached() error {
	if e.canary == nil {
		return nil
	}
	return e.canary.wasReached()
}

// Close ends the queue. It is for an Enforcer that does not Run.
func (e *Enforcer) Close() { e.propagator.queue.ShutDown() }

// Run enforces until ctx ends.
func (e *Enforcer) Run(ctx context.Context) {
	for e.policies.Ready() != nil { // without policies all finalizers would be removed
		if await.Pause(ctx, 100*time.Millisecond) != nil {
			return
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { e.propagator.run(ctx) })
	wg.Go(func() { e.backFill.run(ctx) })
	wg.Go(func() { e.status.run(ctx) })
	if e.configurator != nil {
		wg.Go(func() { e.configurator.run(ctx) })
		wg.Go(func() { e.canary.run(ctx) })
		wg.Go(func() { e.inProcess.run(ctx) })
	} else if e.policies.Set().Asks() {
		e.log.Info("policies are not enforced at the API server: neither --webhook-service nor --webhook-url says where " +
			"the webhook is")
	}
	wg.Wait()
}

// metrics are the metrics of enforcement.
type metrics struct {
	policies        *prometheus.GaugeVec
	policy          *prometheus.GaugeVec
	backFill        *prometheus.GaugeVec
	backFillSuccess prometheus.Gauge
	waiting         prometheus.Gauge
	enforced        *prometheus.CounterVec
	reachable       *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	with := promauto.With(reg)
	m := &metrics{
		policies: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_policies", Help: "Policies, by state. A broken policy is not in force: its status says why, and of " +
				"files the log does."}, []string{"state"}),
		policy: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_policy", Help: "1 for each policy, by kind, name, source (object or file) and state, as in " +
				"weir_policies."}, []string{"kind", "name", "source", "state"}),
		backFill: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_backfill_objects", Help: "Objects that back-fill takes care of, by state: done (the finalizer is as " +
				"policies ask), pending, failed (in the last pass)."}, []string{"state"}),
		backFillSuccess: with.NewGauge(prometheus.GaugeOpts{
			Name: "weir_backfill_last_success_timestamp_seconds", Help: "When back-fill was last complete."}),
		waiting: with.NewGauge(prometheus.GaugeOpts{
			Name: "weir_propagation_waiting", Help: "Terminating objects that Weir holds until their propagation is enforced."}),
		enforced: with.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_propagation_enforced_total", Help: "Deletions whose propagation was enforced, by result: done, and " +
				"failed attempts."}, []string{"result"}),
		reachable: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_webhook_reachable", Help: "1 while the API server asks the webhook and gets an answer, else 0, with " +
				"the reason of the condition Enforced. Tried every 20 s; absent while it cannot be tried, and where there is no " +
				"webhook configuration."}, []string{"reason"}),
	}
	m.enforced.WithLabelValues("done") // a rate needs a first value
	m.enforced.WithLabelValues("failed")
	for _, state := range []string{"done", "pending", "failed"} {
		m.backFill.WithLabelValues(state)
	}
	return m
}

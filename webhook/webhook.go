// Package webhook answers the API server's admission reviews: HTTP on the outside, policies.Set on
// the inside.
//
// What is not an answer is an HTTP error. Then the failurePolicy of the webhook decides, which is
// that of the policies it serves, so a request is never allowed by accident. Requests go to the API
// server only where a decision asks for something: access reviews, a namespace that is not known
// yet, a pod that is to be evicted, the confirmation of an object, and arming. That a policy could
// not be judged is reported beside the answer (blame.go).
//
// Reviews run on goroutines of the server. After an answer only Events go on, on goroutines of the
// recorder. There is one lock, of the connections of unknown clients (server.go), which is not held
// during a request.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// DefaultArmingWindow is how long a DELETE can have been under way when its object got the
// finalizer: the API server gives up a DELETE after 34 s (RB 6.18).
const DefaultArmingWindow = 35 * time.Second

// Paths are the paths of webhooks below a token, which the API server knows from the webhook
// configurations: /TOKEN/delete. A part of the policies has its own, Part.Path.
var Paths = map[policies.Webhook]string{
	policies.WebhookAddFinalizer: "/stamp", policies.WebhookDelete: "/delete",
	policies.WebhookOwners: "/owners", policies.WebhookClear: "/clear",
	policies.WebhookCascade: "/cascade", policies.WebhookGuard: "/guard",
	policies.WebhookCanary: "/canary", policies.WebhookPolicies: "/policies",
	policies.WebhookSelection: "/selection", policies.WebhookConfirm: "/confirm",
}

// Options are what a handler needs to know. Config, Policies and Takes must be set.
type Options struct {
	Config   *rest.Config
	Policies *live.State
	// Takes reports whether the webhook configurations may hold a token.
	Takes func(token string) bool
	// Sealed reports whether Weir wrote the wave of a namespace, or a confirmation; if it is nil,
	// what is written is believed. Seal seals these; it may be nil, and returns false without a key.
	Sealed func(text, seal string) bool
	Seal   func(text string) (seal string, ok bool)
	// Facts are what the ownership graph knows. The zero value knows nothing, and policies that need
	// it cannot be judged.
	Facts policies.Facts
	// Collector finds out, by a request, who collects the garbage of the cluster. If it is nil, that
	// is not known.
	Collector func(context.Context) (policies.Collector, error)
	// ArmingWindow is how long after the finalizer was added a DELETE of the object is held back;
	// DefaultArmingWindow if it is 0. With less, an object whose DELETE met a slow API server can be
	// lost. It is longer, in proportion, for a deletecollection, which may take 60 s.
	ArmingWindow time.Duration
	// Tell is called when a policy could not be judged, at most once a minute for each. It must not
	// block, and may be nil.
	Tell     func(policy map[string]any, message string)
	Registry prometheus.Registerer
	Log      logr.Logger
}

// New returns the handler of all webhooks.
func New(o Options) (http.Handler, error) {
	if o.Config == nil || o.Policies == nil || o.Takes == nil {
		return nil, errors.New("make a webhook: an API server, policies and a token are needed")
	}
	if o.ArmingWindow <= 0 {
		o.ArmingWindow = DefaultArmingWindow
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	// Reviews wait for these requests, so client-go's own limit of five a second must not apply.
	o.Config = rest.CopyConfig(o.Config)
	pace := newPace(requestsASecond, requestsAtOnce)
	o.Config.RateLimiter = pace
	m, err := newMetrics(o.Registry, o.Policies.Set)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	access, err := newAccess(o.Config)
	if err != nil {
		return nil, err
	}
	arm, err := newArmer(o, m)
	if err != nil {
		return nil, err
	}
	log := arm.log
	j := &judge{
		policies: o.Policies, facts: o.Facts, access: access, collector: newCollector(o.Collector, log), arm: arm,
		pace: pace, metrics: m, blames: newBlamer(o.Tell, o.Policies.Object), log: log,
		sealed: o.Sealed, seal: o.Seal,
	}
	in := newIntake(func(p policies.Part) bool { return o.Policies.Set().Refuses(p) })
	return router(func(asked policies.Webhook) reviewer {
		switch asked {
		case policies.WebhookCanary:
			return canary
		case policies.WebhookPolicies:
			return check
		}
		return func(r *http.Request, q policies.Question) answer { return j.answer(r.Context(), asked, q) }
	}, o.Takes, o.Policies.Ready, in, m, log), nil
}

// router returns the routes of all webhooks.
func router(
	reviewers func(policies.Webhook) reviewer, takes func(string) bool, ready func() error,
	in *intake, m *metrics, log *sayer,
) http.Handler {
	r := chi.NewRouter()
	r.Use(recovered(log, m))
	r.NotFound(noWebhook(m))
	r.MethodNotAllowed(noWebhook(m))
	for asked, path := range Paths {
		judge := reviewers(asked)
		for _, part := range slices.Concat(policies.Parts, []policies.Part{""}) {
			e := &entry{asked, part, judge, in, m, log}
			r.Method(http.MethodPost, "/{token}"+part.Path(path), admitted(e, takes, ready, m))
		}
	}
	return r
}

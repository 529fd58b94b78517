// Package webhook answers the API server's admission reviews: HTTP on the outside, policies.Set on
// the inside.
//
// What is not an answer is an HTTP error, and the failurePolicy of the webhook's entry then
// decides, which is that of the policies it serves: a request is never allowed by accident. Nothing
// is sent to the API server but what a decision asks for: access reviews, the namespace of an
// object when it is not known yet, pods that are to be evicted, and arming. That a policy could not
// be judged is told beside the answer (blame.go).
//
// Reviews come on goroutines of the server. What goes on after an answer are Events (on the
// goroutines of the recorder) and the arming of collections, on a few goroutines of Handler.Run.
// There are two locks, of which none is held during a request, nor under the other: of the
// collections that are being armed (arm.go), and of the connections of unknown clients (server.go).
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// DefaultArmingWindow is how long a DELETE can have been under way when its object got the
// finalizer: the API server gives up on one after 34 s (RB 6.18).
const DefaultArmingWindow = 35 * time.Second

// Paths are where the webhooks are, below a token that the API server knows from the webhook
// configurations: /TOKEN/delete. A part of the policies is asked at its Part.Path.
var Paths = map[policies.Webhook]string{
	policies.WebhookAddFinalizer: "/stamp", policies.WebhookDelete: "/delete",
	policies.WebhookOwners: "/owners", policies.WebhookClear: "/clear",
	policies.WebhookCascade: "/cascade", policies.WebhookGuard: "/guard",
	policies.WebhookCanary: "/canary", policies.WebhookPolicies: "/policies", policies.WebhookBrake: "/brake",
	policies.WebhookSelection: "/selection", policies.WebhookConfirm: "/confirm",
}

// Options are what a handler needs to know. Config, Policies and Takes must be set.
type Options struct {
	Config   *rest.Config
	Policies *live.State
	// Takes tells whether a token is one that the API server has been told.
	Takes func(token string) bool
	// Sealed tells what Weir wrote of the wave of a namespace, and of confirmations; nil believes
	// what is written. Seal seals these; nil, or false, for no key.
	Sealed func(text, seal string) bool
	Seal   func(text string) (seal string, ok bool)
	// Facts are what the ownership graph knows; the zero value knows nothing, and policies that
	// need it cannot be judged.
	Facts policies.Facts
	// Collector finds out who collects the garbage of the cluster, by a request; nil: it is not
	// known.
	Collector func(context.Context) (policies.Collector, error)
	// Brake holds what another garbage collector deletes; nil: nothing is held.
	Brake Brake
	// ArmingWindow is how long after the finalizer was added no DELETE of the object is let
	// through; DefaultArmingWindow. With less, an object whose DELETE met a slow API server can be
	// lost. That of a deletecollection is longer in proportion, since those may take 60 s.
	ArmingWindow time.Duration
	// Tell is called when a policy could not be judged, of each once a minute at most. It must not
	// block; nil: nothing is told.
	Tell func(policy map[string]any, message string)
	// Saw is told of each DELETE that is let through, of whom it is, and how it is carried out:
	// whether it has an effect is not known by then. It must not block; nil: nothing is told.
	Saw      func(uid types.UID, user, how string)
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Handler answers the reviews of all webhooks. While it serves, Run runs.
type Handler struct {
	http.Handler
	arm *armer
}

// Run does what goes on after an answer: the objects of a deletecollection get the finalizer. It
// ends with ctx, and by then nothing of it is under way any more.
func (h *Handler) Run(ctx context.Context) error { return h.arm.run(ctx) }

// New makes the handler of all webhooks.
func New(o Options) (*Handler, error) {
	if o.Config == nil || o.Policies == nil || o.Takes == nil {
		return nil, errors.New("make a webhook: an API server, policies and a token are needed")
	}
	if o.ArmingWindow <= 0 {
		o.ArmingWindow = DefaultArmingWindow
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	// A request of the API server waits for every request of ours, for ten seconds at most: it may
	// not wait for client-go's own limit of five in a second.
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
	j := &judge{policies: o.Policies, facts: o.Facts, access: access, collector: newCollector(o.Collector, log), arm: arm,
		pace: pace, metrics: m, blames: newBlamer(o.Tell, o.Policies.Object), log: log, sealed: o.Sealed, seal: o.Seal, saw: o.Saw}
	in := newIntake(func(p policies.Part) bool { return o.Policies.Set().Refuses(p) })
	routes := router(func(asked policies.Webhook) reviewer {
		switch asked {
		case policies.WebhookCanary:
			return canary
		case policies.WebhookPolicies:
			return check
		case policies.WebhookBrake:
			return brake(o.Brake)
		}
		return func(r *http.Request, q policies.Question) answer { return j.answer(r.Context(), asked, q) }
	}, o.Takes, o.Policies.Ready, in, m, log)
	return &Handler{routes, arm}, nil
}

// router is the HTTP of it.
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
			r.With(known(takes, m), deadline, whenReady(ready)).
				Method(http.MethodPost, "/{token}"+part.Path(path), &entry{asked, part, judge, in, m, log})
		}
	}
	return r
}

package load

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A Result is one cascade or one draining, measured.
type Result struct {
	// Dependents are the objects that go because another was deleted: below
	// an owner, or in a namespace.
	Dependents int
	// Began is when the first request was sent, where that is remembered.
	Began time.Time
	// Took runs from sending the first request to the end of the last object.
	Took time.Duration
	// First runs to the end of the first dependent, or of the first of several
	// namespaces, as the driver saw it.
	First time.Duration
	// Requests are those of the population's resource by verb, without the
	// driver's own; nil for the floor, whose requests are the driver's.
	Requests Counts
}

// Rate is dependents per second.
func (r Result) Rate() float64 { return float64(r.Dependents) / r.Took.Seconds() }

// PerObject is requests per dependent.
func (r Result) PerObject() float64 { return r.Requests.Total() / float64(r.Dependents) }

// Measure runs act, which sets the cascade off, and waits for its end.
func Measure(ctx context.Context, cfg *rest.Config, p *Population, policy metav1.DeletionPropagation, act func(context.Context) error) (Result, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return Result{}, fmt.Errorf("measure: %w", err)
	}
	f, err := newFollow(ctx, client, p, policy)
	if err != nil {
		return Result{}, err
	}
	result, err := f.measure(ctx, act)
	result.Dependents = len(p.Dependents)
	return result, err
}

// Deletes has cfg's user delete each object of a population, and waits until all are gone. The
// requests are all, the user's among them.
func Deletes(ctx context.Context, admin, cfg *rest.Config, metrics func(context.Context) (string, error), p *Population) (Result, error) {
	policy := metav1.DeletePropagationBackground
	return counted(ctx, admin, metrics, p, policy, func(ctx context.Context) error { return Floor(ctx, cfg, p, policy) })
}

// Cascade deletes the owner with a policy and measures what a running system
// makes of it, with the requests that it sent.
func Cascade(ctx context.Context, cfg *rest.Config, metrics func(context.Context) (string, error), p *Population, policy metav1.DeletionPropagation) (Result, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return Result{}, fmt.Errorf("cascade: %w", err)
	}
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	result, err := counted(ctx, cfg, metrics, p, policy, func(ctx context.Context) error {
		return in.Delete(ctx, p.Owner.Name, metav1.DeleteOptions{
			PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &p.Owner.UID},
		})
	})
	if err == nil {
		result.Requests["DELETE"]-- // the owner's, sent here
	}
	return result, err
}

// counted is Measure with the requests that there were.
func counted(ctx context.Context, cfg *rest.Config, metrics func(context.Context) (string, error), p *Population,
	policy metav1.DeletionPropagation, act func(context.Context) error) (Result, error) {
	before, err := countRequests(ctx, metrics, about(p.Layout.Kind))
	if err != nil {
		return Result{}, err
	}
	result, err := Measure(ctx, cfg, p, policy, act)
	if err != nil {
		return result, err
	}
	after, err := countRequests(ctx, metrics, about(p.Layout.Kind))
	if err != nil {
		return result, err
	}
	result.Requests = after.minus(before)
	result.Requests["LIST"]-- // follow's
	return result, nil
}

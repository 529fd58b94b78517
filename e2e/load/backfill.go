package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// FinalizersAdded is how a population got weir's finalizer.
type FinalizersAdded struct {
	Began time.Time // weir was started
	First time.Time // the first sample that shows that it adds finalizers
	Done  time.Time // the first that shows that it has
	// Since is how many were left at First.
	Since int
}

// Rate is objects per second, without the start.
func (s FinalizersAdded) Rate() float64 { return float64(s.Since) / s.Done.Sub(s.First).Seconds() }

const (
	// progressEvery is how often the API server is asked how far it is: it counts its requests
	// anyway, where to follow the objects would take as much of it, and of the process that
	// measures it, as back-fill.
	progressEvery = 500 * time.Millisecond
	// listPage is how many objects are read at once when all should carry the finalizer.
	listPage = 1000
)

// AwaitBackFill starts something, and waits until every dependent of a population carries weir's
// finalizer.
func AwaitBackFill(ctx context.Context, cfg *rest.Config, metrics func(context.Context) (string, error), p *Population, start func() error) (s FinalizersAdded, err error) {
	changed := func() (int, error) {
		counts, err := countRequests(ctx, metrics, func(r request) bool {
			return about(p.Layout.Kind)(r) && r.verb == "PATCH" && r.code == "200"
		})
		return int(counts.Total()), err
	}
	before, err := changed()
	if err != nil {
		return s, err
	}
	s.Began = time.Now()
	if err := start(); err != nil {
		return s, err
	}
	due, moved, last := len(p.Dependents), time.Now(), 0
	for {
		n, err := changed()
		if err != nil {
			return s, err
		}
		n -= before
		now := time.Now()
		switch {
		case n > 0 && s.First.IsZero():
			s.First, s.Since = now, due-n
		case n >= due: // others may change objects of the kind, too
			if left, err := unstamped(ctx, cfg, p); left == 0 || err != nil {
				s.Done = now
				return s, err
			}
		}
		if n > last {
			moved, last = now, n
		}
		if now.Sub(moved) > cascadePatience {
			return s, fmt.Errorf("wait for objects to be stamped: nothing happened for %s after %d of %d", cascadePatience, n, due)
		}
		if err := Pause(ctx, progressEvery); err != nil {
			return s, err
		}
	}
}

// unstamped is how many dependents of a population do not carry weir's finalizer.
func unstamped(ctx context.Context, cfg *rest.Config, p *Population) (n int, err error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return 0, fmt.Errorf("look for finalizers: %w", err)
	}
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	n = len(p.Dependents)
	for options := (metav1.ListOptions{Limit: listPage}); ; {
		list, err := in.List(ctx, options)
		if err != nil {
			return 0, fmt.Errorf("look for finalizers: %w", err)
		}
		for i := range list.Items {
			if slices.Contains(list.Items[i].Finalizers, weirFinalizer) {
				n--
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return n, nil
		}
	}
}

package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// guard lets writes pass only while the gate is open, and tells of connections that end. It is the
// last to see a request: what waited for a place, or is tried again, comes by here too.
type guard struct {
	next    http.RoundTripper
	history *History
}

// Guard stands before what sends requests: writes pass only while the gate is open.
func (h *History) Guard(next http.RoundTripper) http.RoundTripper {
	return &guard{next: next, history: h}
}

// WrappedRoundTripper is where client-go finds out how to cancel requests.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip implements http.RoundTripper. An answer is contact, whatever it says, and a deadline of
// ours says nothing.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		if err := g.history.admit(req.Context()); err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // nothing was sent of it
			}
			return nil, err
		}
	}
	resp, err := g.next.RoundTrip(req)
	if req.Context().Err() == nil && contactLost(err) {
		g.history.lost()
	}
	return resp, err
}

// contactLost tells whether a request ended because there is no connection to the API server. An
// answer is none of that, and neither is a deadline of ours, or one stream of a connection that
// breaks: an API server gives up a request, or what it passes on, and goes on with the others.
func contactLost(err error) bool {
	var status apierrors.APIStatus
	var stream http2.StreamError
	ours := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	return err != nil && !ours && !errors.As(err, &status) && !errors.As(err, &stream)
}

// witness tells of each answer after which client-go comes again by itself, and says nothing for as
// long as that takes.
type witness struct{ next http.RoundTripper }

type witnessKey struct{}

// witnessed has tell told of such answers to requests under the context.
func witnessed(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, witnessKey{}, report)
}

// WrappedRoundTripper is where client-go finds out how to cancel requests.
func (w *witness) WrappedRoundTripper() http.RoundTripper { return w.next }

// RoundTrip implements http.RoundTripper.
func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if report, ok := req.Context().Value(witnessKey{}).(func(error)); ok && err == nil && resp.Header.Get("Retry-After") != "" {
		report(fmt.Errorf("the API server answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	}
	return resp, err
}

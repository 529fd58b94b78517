package follow

import (
	"context"
	"errors"
	"net/http"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// guard lets writes pass only while the gate is open, and reports connections that end. It comes
// last, after queues and retries.
type guard struct {
	next    http.RoundTripper
	history *History
}

// Guard wraps a transport so that writes pass only while the gate is open.
func (h *History) Guard(next http.RoundTripper) http.RoundTripper {
	return &guard{next: next, history: h}
}

// WrappedRoundTripper lets client-go find the transport that cancels requests.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip implements http.RoundTripper. Any answer is contact, and a deadline of ours says
// nothing.
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

// contactLost reports whether a request ended because there is no connection to the API server. An
// answer is none of that, nor is a deadline of ours, nor one broken stream of a connection: an API
// server may give up one request and go on with the others.
func contactLost(err error) bool {
	var status apierrors.APIStatus
	var stream http2.StreamError
	ours := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	return err != nil && !ours && !errors.As(err, &status) && !errors.As(err, &stream)
}

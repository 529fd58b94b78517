package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// guard lets writes pass only while the history is known to go on, and tells it of answers that did
// not come. It is the last to see a request: what waited for a place, or is tried again, comes by
// here too.
type guard struct {
	next    http.RoundTripper
	history *History
}

// Guard stands before what sends requests: writes pass only while the history is known to go on.
func (h *History) Guard(next http.RoundTripper) http.RoundTripper {
	return &guard{next: next, history: h}
}

// WrappedRoundTripper is where client-go finds out how to cancel requests.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		if err := g.history.prove(req.Context()); err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // nothing was sent of it
			}
			return nil, err
		}
	}
	resp, err := g.next.RoundTrip(req)
	switch {
	case err != nil:
		if !errors.Is(err, context.Canceled) && !errors.Is(req.Context().Err(), context.Canceled) {
			g.history.lost()
		}
	case troubled(resp.StatusCode) && !aboutItself(resp):
		g.history.lost()
	}
	return resp, err
}

// troubled tells whether an answer says that the API server cannot get at what it stores. Not 503:
// it comes from what stands before the API server, whose watches break then, or from an aggregated
// API, which could shut the gate with it for everybody else.
func troubled(code int) bool {
	return code >= http.StatusInternalServerError && code != http.StatusServiceUnavailable
}

// saysWebhook is what an API server says of webhooks, in each message about one: a space follows,
// as in no name of an object or a kind.
const saysWebhook = "webhook "

// saysTooLarge is what etcd, and the API server's client of it, say of an object that is too large
// to store: the next one need not be.
var saysTooLarge = []string{"request is too large", "message larger than max"}

// saysItself tells whether the text of an answer is about the request: an admission webhook failed,
// or what is to be written is too large, and not the API server.
func saysItself(text string) bool {
	return strings.Contains(text, saysWebhook) || slices.ContainsFunc(saysTooLarge, func(says string) bool { return strings.Contains(text, says) })
}

// aboutItself tells whether an answer is about the request, and says nothing of the API server.
func aboutItself(resp *http.Response) bool {
	const most = 4096
	body := resp.Body
	head, err := io.ReadAll(io.LimitReader(body, most))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), remainder{body, err}), body}
	return saysItself(string(head))
}

// remainder is what is left of a body of which a part was read, which may have ended in an error.
type remainder struct {
	body io.Reader
	err  error
}

func (r remainder) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.body.Read(p)
}

// contactLost tells whether an attempt to list or to watch ended without an answer of the API
// server, or with one that says it has lost its storage.
func contactLost(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return troubled(int(status.Status().Code)) && !saysItself(err.Error())
	}
	return err != nil && !errors.Is(err, context.Canceled)
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

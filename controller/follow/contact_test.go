package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

func statusError(code int, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code),
		Message: message}}
}

// An answer is contact, whatever it says.
func TestWhatIsALossOfContact(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		lost bool
	}{
		"nothing":                    {nil, false},
		"connection refused":         {&url.Error{Op: "Get", URL: "x", Err: errors.New("connection refused")}, true},
		"connection reset in a list": {io.ErrUnexpectedEOF, true},
		"a stream that is given up": {fmt.Errorf("list: %w", http2.StreamError{StreamID: 3, Code: http2.ErrCodeInternal}),
			false},
		"who asks has ended":        {&url.Error{Op: "Get", URL: "x", Err: context.Canceled}, false},
		"storage fails":             {statusError(500, "etcdserver: leader changed"), false},
		"an API that is late":       {fmt.Errorf("list: %w", statusError(504, "timeout")), false},
		"an aggregated API is away": {statusError(503, "service unavailable"), false},
		"too many requests":         {statusError(429, "later"), false},
		"forbidden":                 {statusError(403, "no"), false},
	} {
		if got := contactLost(c.err); got != c.lost {
			t.Errorf("%s: %t, want %t", name, got, c.lost)
		}
	}
}

// TestGuardTellsOfRequestsWithoutAnAnswer, and not of those that who asked gave up: a worker that
// ends is no reason to doubt the API server.
func TestGuardTellsOfRequestsWithoutAnAnswer(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for name, c := range map[string]struct {
		err   error
		ended bool // the context of the request has
		lost  bool
	}{
		"connection reset":         {err: reset, lost: true},
		"no answer to a ping":      {err: errors.New("http2: client connection lost"), lost: true},
		"given up":                 {err: context.Canceled},
		"reset as it was given up": {err: reset, ended: true},
	} {
		h := newHistory(nil, logr.Discard())
		guarded := h.Guard(fixture.Tripper(func(*http.Request) (*http.Response, error) { return nil, c.err }))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if c.ended {
			cancel()
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/api/v1/namespaces/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := guarded.RoundTrip(req)
		if resp != nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, c.err) || h.closed.Load() != c.lost || h.losses > 1 {
			t.Errorf("%s: %v, gate closed: %t, want %t", name, err, h.closed.Load(), c.lost)
		}
	}
}

type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

// Reads are what finds out whether there is contact again, so none may wait for it. Of a write
// nothing is sent, and its body is closed, as a transport has to.
func TestClosedGateLetsReadsPassAndNoWrite(t *testing.T) {
	for method, passes := range map[string]bool{
		http.MethodGet: true, http.MethodHead: true, http.MethodPost: false, http.MethodPut: false, http.MethodPatch: false,
		http.MethodDelete: false,
	} {
		h := newHistory(nil, logr.Discard())
		h.closed.Store(true)
		sent := 0
		guarded := h.Guard(fixture.Tripper(func(r *http.Request) (*http.Response, error) {
			sent++
			return fixture.Reply(r, http.StatusOK, "", ""), nil
		}))
		body := &closing{Reader: strings.NewReader("{}")}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://api.test/api/v1/namespaces/x", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := guarded.RoundTrip(req)
		switch {
		case passes && (err != nil || sent != 1):
			t.Errorf("%s: %v, sent %d times", method, err, sent)
		case !passes && (!errors.Is(err, ErrNoContact) || sent != 0 || body.closed != 1):
			t.Errorf("%s: %v, sent %d times, its body closed %d times", method, err, sent, body.closed)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
	}
}

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
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

func statusError(code int, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message}}
}

// An answer is contact, whatever it says, unless it says that the storage fails.
func TestWhatTellsAFollowerThatContactIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		lost bool
	}{
		"nothing":                         {nil, false},
		"connection refused":              {&url.Error{Op: "Get", URL: "x", Err: errors.New("connection refused")}, true},
		"connection reset in a list":      {io.ErrUnexpectedEOF, true},
		"no answer in time":               {context.DeadlineExceeded, true},
		"who asks has ended":              {&url.Error{Op: "Get", URL: "x", Err: context.Canceled}, false},
		"storage fails":                   {statusError(500, "etcdserver: leader changed"), true},
		"storage fails, in other words":   {fmt.Errorf("list: %w", statusError(504, "timeout")), true},
		"storage fails for webhooks":      {apierrors.NewServerTimeout(schema.GroupResource{Resource: "mutatingwebhookconfigurations"}, "list", 1), true},
		"conversion fails":                {statusError(500, "conversion webhook for example.com/v1, Kind=Widget failed: EOF"), false},
		"a list that is too large":        {statusError(500, "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (4194305 vs. 4194304)"), false},
		"what stands before it is busy":   {statusError(503, "service unavailable"), false},
		"too many requests":               {statusError(429, "later"), false},
		"forbidden":                       {statusError(403, "no"), false},
		"too long ago":                    {statusError(410, "too old"), false},
		"a watch that showed no bookmark": {errMute, true},
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
		"no answer in time":        {err: context.DeadlineExceeded, lost: true},
		"given up":                 {err: context.Canceled},
		"reset as it was given up": {err: reset, ended: true},
	} {
		h := newHistory(&scripted{}, nil, nil, logr.Discard())
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
		http.MethodGet: true, http.MethodHead: true, http.MethodPost: false, http.MethodPut: false, http.MethodPatch: false, http.MethodDelete: false,
	} {
		h := newHistory(&scripted{}, nil, nil, logr.Discard())
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

// A write that finds no proof asks for one, twice at most, and is then told to come again: it does
// not wait for ever with its place.
func TestWriteWaitsForTwoLooksThatProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(&scripted{}, nil, nil, logr.Discard())
		ended := make(chan error, 1)
		go func() { ended <- h.prove(t.Context()) }()
		for look := range 2 {
			synctest.Wait()
			select {
			case <-h.wake:
			default:
				t.Errorf("look %d is not asked for", look)
			}
			if len(ended) > 0 {
				t.Fatalf("it ended before look %d", look)
			}
			h.hasLooked(false)
		}
		if err := <-ended; !errors.Is(err, ErrNoContact) {
			t.Error(err)
		}
	})
}

// TestProofThatIsHalfAsOldIsRenewedWhileWritesGoOn, so that none waits.
func TestProofThatIsHalfAsOldIsRenewedWhileWritesGoOn(t *testing.T) {
	for after, asks := range map[time.Duration]bool{0: false, freshFor / 2: false, freshFor/2 + 1: true, freshFor: true} {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(&scripted{}, nil, nil, logr.Discard())
			h.hasLooked(true)
			<-time.After(after)
			if err := h.prove(t.Context()); err != nil {
				t.Errorf("a proof of %s ago is none: %v", after, err)
			}
			if asked := len(h.wake) > 0; asked != asks {
				t.Errorf("a proof of %s ago is renewed: %t, want %t", after, asked, asks)
			}
		})
	}
}

// What looked at an answer keeps nothing of it back, an error in its middle included: whoever reads
// must not take half for the whole.
func TestAnswerThatBreaksOffAfterItWasLookedAtBreaksOff(t *testing.T) {
	broke := errors.New("connection reset by peer")
	for name, length := range map[string]int{"early": 10, "late": 10_000} {
		text := strings.Repeat("x", length)
		body := &closing{Reader: io.MultiReader(strings.NewReader(text), failing{broke})}
		resp := &http.Response{StatusCode: 500, Body: body}
		if aboutItself(resp) {
			t.Errorf("%s: it is not about a webhook", name)
		}
		read, err := io.ReadAll(resp.Body)
		if string(read) != text || !errors.Is(err, broke) {
			t.Errorf("%s: %d of %d bytes, %v", name, len(read), length, err)
		}
		if _ = resp.Body.Close(); body.closed != 1 {
			t.Errorf("%s: closed %d times", name, body.closed)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

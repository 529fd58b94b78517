package controller

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

func TestNothingIsFollowedWithoutAnAPIServer(t *testing.T) {
	if c, err := New(Options{}); c != nil || err == nil || !strings.Contains(err.Error(), "no API server is configured") {
		t.Errorf("a controller: %v", err)
	}
	if f, err := NewFollowing(Options{}); f != nil || err == nil || !strings.Contains(err.Error(), "no API server is configured") {
		t.Errorf("what a webhook follows with: %v", err)
	}
}

// What Weir itself deletes is held, where there is a limit. In shadow mode nothing is held.
func TestWhereABrakeIs(t *testing.T) {
	limits := brake.DefaultLimits
	for name, c := range map[string]struct {
		o      Options
		brakes bool
	}{
		"replace mode":           {Options{Brake: limits}, true},
		"replace mode, no limit": {Options{}, false},
		"companion mode":         {Options{Companion: true, Brake: limits}, false},
		"shadow mode":            {Options{Shadow: true, Brake: limits}, false},
	} {
		c.o.Config = &rest.Config{Host: "http://api.test"}
		ctrl, err := New(c.o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := ctrl.brake != nil; got != c.brakes {
			t.Errorf("%s: there is a brake: %t", name, got)
		}
		if shows := ctrl.shadow != nil; shows != c.o.Shadow {
			t.Errorf("%s: it shows what it compared: %t", name, shows)
		}
		ctrl.close()
	}
}

// Watches last for as long as they like and all else has an end; and the configuration of the
// caller stays as it was.
func TestClientsHaveDeadlinesWhereTheyMay(t *testing.T) {
	given := &rest.Config{Host: "http://api.test", QPS: 5, Burst: 10}
	c, err := newClients(given, false)
	if err != nil {
		t.Fatal(err)
	}
	if c.client.Timeout != 0 || c.config.Timeout != 0 || c.boundedClient.Timeout != request.Timeout || c.bounded.Timeout != request.Timeout {
		t.Errorf("watches end after %s, others after %s", c.client.Timeout, c.boundedClient.Timeout)
	}
	if c.config.QPS != -1 || c.bounded.QPS != -1 {
		t.Errorf("%.0f and %.0f requests in a second: they adapt to the API server", c.config.QPS, c.bounded.QPS)
	}
	if given.QPS != 5 || given.Burst != 10 || given.Timeout != 0 || given.WrapTransport != nil {
		t.Errorf("the configuration that was given is another now: %v", given)
	}
}

// closing counts how often a body is closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

// A transport closes the body of each request, also of one that it does not send.
func TestARequestThatShadowModeDoesNotSendIsClosed(t *testing.T) {
	passed := []string{}
	r := readOnly{fixture.Tripper(func(r *http.Request) (*http.Response, error) {
		passed = append(passed, r.Method)
		return fixture.Reply(r, 200, "", "ok"), nil
	})}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		body := &closing{Reader: strings.NewReader("{}")}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://api.test/api/v1/pods", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.RoundTrip(req)
		if resp != nil {
			_ = resp.Body.Close()
		}
		if read := method == "GET" || method == "HEAD"; (err == nil) != read || !read && (body.closed != 1 || !strings.Contains(err.Error(), method+" /api/v1/pods: shadow mode changes nothing")) {
			t.Errorf("%s: %v, closed %d times", method, err, body.closed)
		}
	}
	if diff := cmp.Diff([]string{"GET", "HEAD"}, passed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A process that is to end while the API server has not answered yet ends, and has never led.
func TestWhoHasNotSeenTheClusterDoesNotLead(t *testing.T) {
	for name, o := range map[string]Options{"replace": {Namespaces: 1, Brake: brake.DefaultLimits}, "companion": {Companion: true}, "shadow": {Shadow: true}} {
		synctest.Test(t, func(t *testing.T) {
			o.Config = &rest.Config{Host: "http://api.test", Transport: fixture.Tripper(fixture.Hang)}
			c, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			go func() { ended <- c.Follow(ctx) }()
			go func() { ended <- c.Lead(ctx) }()
			<-time.After(20 * time.Second) // kinds that cannot be listed are not waited for without end
			synctest.Wait()
			if c.leads.Load() || !c.began.Load() || c.Ready() == nil || len(ended) > 0 {
				t.Errorf("%s: leads: %t, ready: %v, %d have ended", name, c.leads.Load(), c.Ready(), len(ended))
			}
			cancel()
			for range 2 {
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if c.leads.Load() {
				t.Errorf("%s: it has led", name)
			}
		})
	}
}

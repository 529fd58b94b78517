package cmd

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// free is an address of this machine at which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// await returns when something listens at an address: the manager opens that of metrics beside its
// other parts.
func await(t *testing.T, address string) {
	t.Helper()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("nothing listens at " + address)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// get is the status of an answer, and what is in it.
func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(body)
}

// TestAProcessTellsHowItIs: it lives as soon as it runs, is ready once all of its checks say so,
// and each can be asked alone.
func TestAProcessTellsHowItIs(t *testing.T) {
	p := &processFlags{metricsAddress: free(t), healthAddress: free(t)}
	m := newManagement(&rest.Config{Host: "http://127.0.0.1:1"}, p, nil)
	var listed atomic.Bool
	m.ready("graph", func() error {
		if !listed.Load() {
			return errors.New("pods are not listed yet")
		}
		return nil
	})
	m.ready("other", func() error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.follow("a look at it", func(context.Context) error {
		defer cancel()
		for _, c := range []struct {
			path string
			code int
		}{{"/healthz", 200}, {"/readyz", 500}, {"/readyz/graph", 500}, {"/readyz/other", 200}, {"/readyz?exclude=graph", 200}, {"/metrics", 404}} {
			if code, body := get(t, "http://"+p.healthAddress+c.path, ""); code != c.code {
				t.Errorf("%s: %d %s, want %d", c.path, code, body, c.code)
			}
		}
		listed.Store(true)
		if code, body := get(t, "http://"+p.healthAddress+"/readyz", ""); code != 200 {
			t.Errorf("once it is ready: %d %s", code, body)
		}
		await(t, p.metricsAddress)
		if code, body := get(t, "http://"+p.metricsAddress+"/metrics", ""); code != 200 || !strings.Contains(body, "\ngo_goroutines ") {
			t.Errorf("metrics: %d %.100s", code, body)
		}
		return nil
	})
	if err := m.run(ctx); err != nil {
		t.Error(err)
	}
	if code, _ := get(t, "http://"+p.healthAddress+"/healthz", ""); code != 0 {
		t.Error("it has ended, and answers")
	}
}

// TestMetricsAreForWhoMayReadThem: over TLS, after the API server was asked who it is and what it
// may.
func TestMetricsAreForWhoMayReadThem(t *testing.T) {
	api := apitest.New()
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		var review struct{ Spec map[string]any }
		if err := json.Unmarshal([]byte(r.Body), &review); err != nil {
			return nil
		}
		switch {
		case strings.HasSuffix(r.Path, "/tokenreviews"):
			token := fmt.Sprint(review.Spec["token"])
			return &apitest.Reply{Code: 201, Body: map[string]any{"status": map[string]any{"authenticated": token != "forged", "user": map[string]any{"username": token}}}}
		case strings.HasSuffix(r.Path, "/subjectaccessreviews"):
			path := fmt.Sprint(review.Spec["nonResourceAttributes"].(map[string]any)["path"])
			return &apitest.Reply{Code: 201, Body: map[string]any{"status": map[string]any{"allowed": review.Spec["user"] == "prometheus" && path == "/metrics"}}}
		}
		return nil
	})
	p := &processFlags{metricsAddress: free(t), metricsSecure: true, healthAddress: noAddress}
	m := newManagement(api.Config(), p, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.follow("a look at it", func(context.Context) error {
		defer cancel()
		await(t, p.metricsAddress)
		for _, c := range []struct {
			path, token string
			code        int // the library says 500 for a token that is not valid
		}{
			{"/metrics", "", 401}, {"/metrics", "forged", 500}, {"/metrics", "somebody", 403}, {"/metrics", "prometheus", 200},
			{"/another", "prometheus", 403},
		} {
			if code, body := get(t, "https://"+p.metricsAddress+c.path, c.token); code != c.code {
				t.Errorf("%s as %q: %d %.100s, want %d", c.path, c.token, code, body, c.code)
			}
		}
		if code, body := get(t, "http://"+p.metricsAddress+"/metrics", "prometheus"); code == 200 {
			t.Errorf("without TLS: %.100s", body)
		}
		return nil
	})
	if err := m.run(ctx); err != nil {
		t.Error(err)
	}
}

// TestAProcessEndsAsAWhole: a part that fails ends the others, which are waited for, and its error
// names it.
func TestAProcessEndsAsAWhole(t *testing.T) {
	off := &processFlags{metricsAddress: noAddress, healthAddress: noAddress}
	m := newManagement(&rest.Config{Host: "http://127.0.0.1:1"}, off, &collectorFlags{})
	runs, left := make(chan struct{}, 2), make(chan struct{}, 2)
	stays := func(ctx context.Context) error {
		runs <- struct{}{}
		<-ctx.Done()
		left <- struct{}{}
		return nil
	}
	m.follow("stays", stays)
	m.lead(stays) // without an election every process leads
	broken := errors.New("broken")
	m.follow("fails", func(context.Context) error {
		<-runs
		<-runs
		return broken
	})
	if err := m.run(t.Context()); !errors.Is(err, broken) || err.Error() != "fails: broken" {
		t.Errorf("it ends with %v", err)
	}
	if len(left) != 2 {
		t.Errorf("%d of 2 parts were waited for", len(left))
	}
}

// TestAPortThatIsTakenEndsAProcessBeforeItWorks: a second weir beside the first must not delete for
// a moment.
func TestAPortThatIsTakenEndsAProcessBeforeItWorks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, p := range map[string]processFlags{
		"health":  {metricsAddress: noAddress, healthAddress: l.Addr().String()},
		"metrics": {metricsAddress: l.Addr().String(), healthAddress: noAddress},
	} {
		m := newManagement(&rest.Config{Host: "http://127.0.0.1:1"}, &p, &collectorFlags{})
		m.lead(func(context.Context) error {
			t.Errorf("%s: it leads", name)
			return nil
		})
		if err := m.run(t.Context()); err == nil || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPortsThatAnyPodReachesHaveFewConnections: who sends headers without an end gets no more of
// the process's memory by opening more of them, and probes are still answered.
func TestPortsThatAnyPodReachesHaveFewConnections(t *testing.T) {
	p := &processFlags{metricsAddress: free(t), metricsSecure: true, healthAddress: free(t)}
	m := newManagement(apitest.New().Config(), p, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.follow("a look at it", func(context.Context) error {
		defer cancel()
		await(t, p.metricsAddress)
		await(t, p.healthAddress)
		var both sync.WaitGroup
		for name, dial := range map[string]func() (net.Conn, error){
			"health": func() (net.Conn, error) { return net.Dial("tcp", p.healthAddress) },
			"metrics": func() (net.Conn, error) {
				return tls.Dial("tcp", p.metricsAddress, &tls.Config{InsecureSkipVerify: true})
			},
		} {
			both.Go(func() {
				var open []net.Conn
				for range 3 * mostConnections {
					conn, err := dial()
					if err != nil {
						t.Error(name, err)
						return
					}
					defer conn.Close()
					_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nX: y")
					open = append(open, conn)
				}
				for i, conn := range open[:2*mostConnections] {
					_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // no server gives up so early by itself
					if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%s: connection %d is still open: %v", name, i, err)
						return
					}
				}
				long, err := dial()
				if err != nil {
					t.Error(name, err)
					return
				}
				defer long.Close()
				_, _ = io.WriteString(long, "GET / HTTP/1.1\r\nX: "+strings.Repeat("y", 24<<10)+"\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(long), nil)
				if err != nil {
					t.Errorf("%s: 24 KiB of headers: %v", name, err)
					return
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("%s: 24 KiB of headers: %s", name, resp.Status)
				}
				last := open[len(open)-1]
				_ = last.SetReadDeadline(time.Now().Add(15 * time.Second)) // three times what headers may take
				if _, err := io.ReadAll(last); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: headers without an end are waited for: %v", name, err)
				}
			})
		}
		both.Wait()
		if code, body := get(t, "http://"+p.healthAddress+"/healthz", ""); code != 200 {
			t.Errorf("a probe meanwhile: %d %s", code, body)
		}
		if code, body := get(t, "https://"+p.metricsAddress+"/metrics", ""); code != 401 {
			t.Errorf("a scrape without a token meanwhile: %d %s", code, body)
		}
		return nil
	})
	if err := m.run(ctx); err != nil {
		t.Error(err)
	}
}

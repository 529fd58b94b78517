//go:build full

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/weir"
)

// between stands between weir and the API server: it sees what weir asks for, and
// keeps from it what a test wants it to miss.
type between struct {
	mu      sync.Mutex
	accepts map[string]int  // what reads asked for: get, list or watch, and the Accept header
	missing map[string]bool // events that weir is not to see: type and name
	missed  map[string]bool
}

// startWeirBehind runs a weir of the fixture's own that reaches the API server
// through a server that stands between.
func (w *fixture) startWeirBehind(flags ...string) *between {
	w.Helper()
	b := &between{accepts: map[string]int{}, missing: map[string]bool{}, missed: map[string]bool{}}
	path := w.kubeconfigThrough("behind", func(api *httputil.ReverseProxy) http.Handler {
		rewrite := api.Rewrite
		api.Rewrite = func(r *httputil.ProxyRequest) { rewrite(r); b.see(r) }
		api.ModifyResponse = b.answer
		return api
	})
	w.weir = w.runWeir(weir.Options{Kubeconfig: path, Flags: flags})
	return b
}

// see notes what a read asks for. Watches are asked for as JSON, which is a line
// an event.
func (b *between) see(r *httputil.ProxyRequest) {
	path := strings.Split(strings.Trim(r.In.URL.Path, "/"), "/")
	if r.In.Method != http.MethodGet || len(path) < 3 || path[0] == "apis" && len(path) < 4 {
		return // discovery
	}
	how := "read"
	if isWatch(r.In) {
		how = "watch"
		r.Out.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepts[how+" "+r.In.Header.Get("Accept")+" "+path[len(path)-1]]++
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func (b *between) answer(r *http.Response) error {
	if r.StatusCode == http.StatusOK && isWatch(r.Request) {
		from := r.Body
		body, to := io.Pipe()
		go func() { to.CloseWithError(b.pass(from, to)) }()
		r.Body = &both{body, from}
	}
	return nil
}

// both is read from one end, and closed at both.
type both struct {
	io.ReadCloser
	other io.Closer
}

func (c *both) Close() error {
	err := c.ReadCloser.Close()
	_ = c.other.Close() // its reader ends
	return err
}

// pass hands on the events of a watch, but for those that are to be missed.
func (b *between) pass(from io.Reader, to io.Writer) error {
	for events := json.NewDecoder(from); ; {
		var raw json.RawMessage
		if err := events.Decode(&raw); err != nil {
			return err
		}
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(raw, &event); err != nil {
			return err
		}
		if b.misses(event.Type + " " + event.Object.Name) {
			continue
		}
		if _, err := to.Write(append(bytes.TrimSpace(raw), '\n')); err != nil {
			return err
		}
	}
}

func (b *between) misses(event string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.missing[event] {
		b.missed[event] = true
	}
	return b.missing[event]
}

// miss keeps events from weir from now on, each named by its type and its object.
func (b *between) miss(events ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		b.missing[e] = true
	}
}

// awaitMissed waits until these events, and no others, have been kept from weir.
func (w *fixture) awaitMissed(b *between, events ...string) {
	w.Helper()
	w.until("weir has missed what it was to miss", func(context.Context) (bool, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Equal(slices.Sorted(maps.Keys(b.missed)), slices.Sorted(slices.Values(events))), nil
	})
}

package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// steps stands between weir and the API server, and has weir stop at a step of what it does in some
// namespaces: at the n-th write in each of them. That write is either not passed on, or carried out
// and never answered; nor is any that comes after it. So who kills weir then kills it exactly
// there.
type steps struct {
	api http.Handler

	mu      sync.Mutex
	at      int // the write at which it stops; 0: at none
	after   map[string]bool
	writes  map[string][]string // by namespace: those that came since it was last set
	stopped map[string]bool     // by namespace: it is at the step
}

// stopAt sets at which write it stops in which namespaces, and where that is carried out.
func (s *steps) stopAt(n int, after map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.after, s.writes, s.stopped = n, after, map[string][]string{}, map[string]bool{}
}

// came are the writes that came in a namespace, and whether it stands at the step.
func (s *steps) came(namespace string) (writes []string, stands bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes[namespace]), s.stopped[namespace]
}

// ServeHTTP passes on a request, or lets it wait until weir has gone.
func (s *steps) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	namespace, write := writeOf(in)
	body, err := io.ReadAll(in.Body) // whether the client has gone is only looked for when all is read
	if err != nil {
		return
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	switch past, carriedOut := s.next(namespace, write); {
	case past < 0:
		s.api.ServeHTTP(out, in)
		return
	case past == 0:
		if carriedOut {
			s.api.ServeHTTP(httptest.NewRecorder(), in.WithContext(context.WithoutCancel(in.Context())))
		}
		s.mu.Lock()
		s.stopped[namespace] = true
		s.mu.Unlock()
	}
	<-in.Context().Done()
}

// next counts a write, and tells how many it is past the step. At the step it may be carried out.
func (s *steps) next(namespace, write string) (past int, carriedOut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, stops := s.after[namespace]
	if s.at == 0 || !stops || write == "" {
		return -1, false
	}
	s.writes[namespace] = append(s.writes[namespace], write)
	return len(s.writes[namespace]) - s.at, after
}

// writeOf is what a request writes in a namespace, as method and name, but for Events; empty if it
// writes nothing there.
func writeOf(r *http.Request) (namespace, write string) {
	_, path, in := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/")
	if r.Method == http.MethodGet || !in || len(parts) < 3 || parts[1] == "events" {
		return "", ""
	}
	return parts[0], r.Method + " " + parts[2]
}

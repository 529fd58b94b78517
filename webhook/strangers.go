package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// mostStrangers is how many strangers there may be. What each sends as headers, up to a megabyte in half a minute, is kept before anything can tell who it
// is, and how much that is cannot be set: the server is controller-runtime's.
const mostStrangers = 128

// strangers are connections on which no request came by a path with the token, which API servers are told. When mostStrangers others have come after one, it
// is closed.
type strangers struct {
	mu        sync.Mutex
	byAddress map[string]net.Conn
	order     []net.Conn // as they came, those that are strangers no more among them
}

func newStrangers() *strangers { return &strangers{byAddress: map[string]net.Conn{}} }

// watch has a TLS server take connections in here.
func (s *strangers) watch(config *tls.Config) {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if oldest := s.add(hello.Conn); oldest != nil {
			_ = oldest.Close() // its client has most likely left already
		}
		return nil, nil // nil is config itself
	}
}

// add takes in a connection, and returns the one that is to be closed for it; nil: none.
func (s *strangers) add(c net.Conn) (oldest net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byAddress[c.RemoteAddr().String()] = c
	s.order = append(s.order, c)
	if len(s.order) <= mostStrangers {
		return nil
	}
	oldest, s.order = s.order[0], s.order[1:]
	address := oldest.RemoteAddr().String()
	if s.byAddress[address] != oldest { // it is known, or has left, and another client has its address
		return nil
	}
	delete(s.byAddress, address)
	return oldest
}

type strangersKey struct{}

// serve lets next tell who is no stranger.
func (s *strangers) serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), strangersKey{}, s)))
	})
}

// recognize takes in that a request comes from an API server, or from a client that knows as much.
func recognize(r *http.Request) {
	if s, ok := r.Context().Value(strangersKey{}).(*strangers); ok {
		s.mu.Lock()
		delete(s.byAddress, r.RemoteAddr)
		s.mu.Unlock()
	}
}

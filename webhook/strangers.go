package webhook

import (
	"context"
	"crypto/tls"
	"net/http"
)

// mostStrangers is how many connections there may be on which no request came by a path with the
// token, which API servers are told. What each sends as headers, up to a megabyte in half a minute,
// is kept before anything can tell who it is, and how much that is cannot be set: the server is
// controller-runtime's.
const mostStrangers = 128

// watch has a TLS server take connections into a crowd. Clients whose certificate is verified are
// no strangers.
func watch(config *tls.Config, strangers *Crowd) {
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if over := strangers.Add(hello.Conn); over != nil {
			_ = over.Close() // its client has most likely left already
		}
		if config.VerifyConnection == nil {
			return nil, nil // nil is config itself
		}
		own := config.Clone()
		own.VerifyConnection = func(state tls.ConnectionState) error {
			err := config.VerifyConnection(state)
			if err == nil {
				strangers.Remove(hello.Conn.RemoteAddr().String())
			}
			return err
		}
		return own, nil
	}
}

type strangersKey struct{}

// knowing lets next tell who is no stranger.
func knowing(strangers *Crowd, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), strangersKey{}, strangers)))
	})
}

// recognize takes in that a request comes from an API server, or from a client that knows as much.
func recognize(r *http.Request) {
	if s, ok := r.Context().Value(strangersKey{}).(*Crowd); ok {
		s.Remove(r.RemoteAddr)
	}
}

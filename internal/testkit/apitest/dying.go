package apitest

import (
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Dying is a client that is killed at a request: before it comes in, or before its answer does.
type Dying struct {
	server   *Server
	left     atomic.Int64
	answered bool
}

// Dying makes one that is killed after so many requests; answered: the next one still comes in.
func (s *Server) Dying(after int, answered bool) *Dying {
	d := &Dying{server: s, answered: answered}
	d.left.Store(int64(after))
	return d
}

var errKilled = errors.New("killed")

// RoundTrip implements http.RoundTripper.
func (d *Dying) RoundTrip(r *http.Request) (*http.Response, error) {
	n := d.left.Add(-1)
	if n >= 0 || n == -1 && d.answered {
		answer, err := d.server.RoundTrip(r)
		if n >= 0 || err != nil {
			return answer, err
		}
		_ = answer.Body.Close()
	}
	return nil, errKilled
}

// Config is how the client reaches the server.
func (d *Dying) Config() *rest.Config {
	c := d.server.Config()
	c.Transport = d
	return c
}

// Alive tells whether it has not been killed.
func (d *Dying) Alive() bool { return d.left.Load() >= 0 }

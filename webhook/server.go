package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// MostStrangers is how many connections of unknown clients the webhook's server keeps.
	MostStrangers = 128
	// mostHeader bounds the headers of a request, in bytes, and headerTime the time for them and for
	// a TLS handshake.
	mostHeader = 16 << 10
	headerTime = 5 * time.Second
	// idleTime is longer than the 90 s that the API server keeps a connection, so that the API
	// server closes it and no request meets a connection that is being closed.
	idleTime = 2 * time.Minute
)

// NewServer returns a server for a port that any pod can reach. It bounds what an unknown client
// takes: the size and the time of headers, and the number of connections. Beyond most connections
// it closes the oldest one of the address that has the most. So a flood closes its own connections,
// and not the new one of an API server or a kubelet.
func NewServer(handler http.Handler, most int) *http.Server {
	c := &strangers{most: most}
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: mostHeader, ConnState: c.state, ConnContext: c.context}
}

// strangers are the connections of unknown clients. The lock guards the list only.
type strangers struct {
	most int
	mu   sync.Mutex
	came []net.Conn // the oldest first
}

// state implements http.Server.ConnState.
func (c *strangers) state(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if over := c.add(conn); over != nil {
			_ = raw(over).Close() // fails if its client has closed it already
		}
	case http.StateClosed:
		c.remove(conn)
	}
}

// raw returns the connection below TLS, which closes without waiting.
func raw(conn net.Conn) net.Conn {
	if over, ok := conn.(*tls.Conn); ok {
		return over.NetConn()
	}
	return conn
}

// add adds a connection, and returns the one to close for it, or nil.
func (c *strangers) add(conn net.Conn) (over net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came = append(c.came, conn)
	if len(c.came) <= c.most {
		return nil
	}
	of, busiest := map[string]int{}, ""
	for _, one := range c.came {
		host := hostOf(one)
		if of[host]++; of[host] > of[busiest] {
			busiest = host
		}
	}
	i := slices.IndexFunc(c.came, func(one net.Conn) bool { return hostOf(one) == busiest })
	over = c.came[i]
	c.came = slices.Delete(c.came, i, i+1)
	return over
}

func hostOf(conn net.Conn) string {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // a TCP connection has both
	return host
}

// remove forgets a connection that has ended, or whose client is known.
func (c *strangers) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.came, conn); i >= 0 {
		c.came = slices.Delete(c.came, i, i+1)
	}
}

type recognizeKey struct{}

// context implements http.Server.ConnContext. It stores what recognize calls.
func (c *strangers) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, recognizeKey{}, func() { c.remove(conn) })
}

// recognize notes that the client of a request is known: an API server, or a client that knows the
// token.
func recognize(r *http.Request) {
	if known, ok := r.Context().Value(recognizeKey{}).(func()); ok {
		known()
	}
}

// Leaving closes each connection with its next answer once leaving returns true, so that clients
// connect elsewhere. The API server keeps HTTP/1.1 connections to webhooks. If one is closed under
// a request that was just sent, the call fails, and failurePolicy Fail refuses the user's request.
func Leaving(next http.Handler, leaving func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

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
	// MostStrangers is how many connections of clients that are not known the webhook's server keeps.
	MostStrangers = 128
	// mostHeader is how many bytes of headers a request has at most, and headerTime how long they,
	// and a TLS handshake, may take to come.
	mostHeader = 16 << 10
	headerTime = 5 * time.Second
	// idleTime is longer than the 90 s that the API server keeps a connection: it is the side that
	// closes, and no request meets a connection that is being closed.
	idleTime = 2 * time.Minute
)

// NewServer makes a server for a port that any pod can reach. It bounds what a client has of it
// before it is known: the size and the time of headers, and the number of connections. Past most of
// them the oldest of the address that has the most is closed: a flood closes its own connections,
// and not that of an API server or a kubelet that has just connected.
func NewServer(handler http.Handler, most int) *http.Server {
	c := &strangers{most: most}
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: mostHeader, ConnState: c.state, ConnContext: c.context}
}

// strangers are the connections of clients that are not known. The lock is of the list only.
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
			_ = raw(over).Close() // its client has most likely left already
		}
	case http.StateClosed:
		c.remove(conn)
	}
}

// raw is the connection below TLS: to close that waits for nobody.
func raw(conn net.Conn) net.Conn {
	if over, ok := conn.(*tls.Conn); ok {
		return over.NetConn()
	}
	return conn
}

// add takes in a connection, and returns the one that is to be closed for it; nil: none.
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
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// remove forgets a connection: it has ended, or its client is known.
func (c *strangers) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.came, conn); i >= 0 {
		c.came = slices.Delete(c.came, i, i+1)
	}
}

type recognizeKey struct{}

// context implements http.Server.ConnContext: recognize finds there whose connection it is.
func (c *strangers) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, recognizeKey{}, func() { c.remove(conn) })
}

// recognize takes in that a request comes from an API server, or from a client that knows as much.
func recognize(r *http.Request) {
	if known, ok := r.Context().Value(recognizeKey{}).(func()); ok {
		known()
	}
}

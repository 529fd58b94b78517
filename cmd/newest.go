package cmd

import (
	"net"
	"sync"
)

// mostConnections is how many connections a port has that is not the webhook's: a kubelet has one at a time, and who scrapes metrics one each.
const mostConnections = 64

// newest are the connections that came last to a port. When one more comes, the oldest is closed: any pod that reaches the port can open as many as it likes,
// and what each sends as headers is kept until they end. Who asks, and is answered at once, has left by then; who keeps a connection opens another.
type newest struct {
	mu   sync.Mutex
	came [mostConnections]net.Conn // a ring; those that have left are in it, too
	next int
}

func (n *newest) take(c net.Conn) {
	n.mu.Lock()
	oldest := n.came[n.next]
	n.came[n.next] = c
	n.next = (n.next + 1) % len(n.came)
	n.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its client has most likely left already
	}
}

// newestOf is a listener with few connections.
type newestOf struct {
	net.Listener
	newest
}

// Accept implements net.Listener.
func (l *newestOf) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.take(c)
	}
	return c, err
}

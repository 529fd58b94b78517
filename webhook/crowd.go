package webhook

import (
	"net"
	"slices"
	"sync"
)

// Crowd are the connections of clients of which nothing is known, up to a number. Any pod that
// reaches a port can open as many as it likes, and what each sends as headers is kept until they
// end. When there are too many, the oldest of the address that has the most is closed: who opens
// many closes its own, and not those of an API server or a kubelet that has just connected.
type Crowd struct {
	most int
	mu   sync.Mutex
	came []stranger // as they came; those that have left are among them until they are closed for another
}

type stranger struct {
	conn          net.Conn
	address, host string
}

// NewCrowd is one of so many at most.
func NewCrowd(most int) *Crowd { return &Crowd{most: most} }

// Add takes in a connection, and returns the one that is to be closed for it; nil: none.
func (c *Crowd) Add(conn net.Conn) (over net.Conn) {
	one := stranger{conn: conn, address: conn.RemoteAddr().String()}
	one.host = one.address
	if host, _, err := net.SplitHostPort(one.address); err == nil {
		one.host = host
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(one.address) // that one has left, or it could not have its address
	c.came = append(c.came, one)
	if len(c.came) <= c.most {
		return nil
	}
	of, most := map[string]int{}, ""
	for _, s := range c.came {
		if of[s.host]++; of[s.host] > of[most] {
			most = s.host
		}
	}
	i := slices.IndexFunc(c.came, func(s stranger) bool { return s.host == most })
	over = c.came[i].conn
	c.came = slices.Delete(c.came, i, i+1)
	return over
}

// Remove forgets the connection from an address, HOST:PORT: its client is known.
func (c *Crowd) Remove(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(address)
}

func (c *Crowd) remove(address string) {
	c.came = slices.DeleteFunc(c.came, func(s stranger) bool { return s.address == address })
}

// Listen is a listener whose connections are a crowd of so many.
func Listen(l net.Listener, most int) net.Listener { return &crowded{l, NewCrowd(most)} }

type crowded struct {
	net.Listener
	*Crowd
}

// Accept implements net.Listener.
func (l *crowded) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		if over := l.Add(c); over != nil {
			_ = over.Close() // its client has most likely left already
		}
	}
	return c, err
}

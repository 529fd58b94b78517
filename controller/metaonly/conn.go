package metaonly

import (
	"context"
	"net"
	"time"
)

const (
	// gather is how long a busy connection is not read after a read that has emptied it. Most of the
	// cost of an update is to wake up for it, which is paid once for all that come meanwhile.
	gather = 20 * time.Millisecond
	// A connection becomes busy when inARow reads come soon after one another. It stops being busy
	// when inARow reads bring little although it was left alone, or one comes after a silence. One
	// small read is not enough: the API server may have waited for a processor. A connection that is
	// not busy is read at once, since a caller may wait for the event.
	inARow, soon, little, silence = 5, 2 * time.Millisecond, 1 << 10, 100 * time.Millisecond
	// most is the size of a read.
	most = 64 << 10
)

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// gathering returns a dial function whose connections are read in few, large pieces.
func gathering(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, buffer: make([]byte, most)}, nil
	}
}

// conn is a connection that is read in few, large pieces. It has one reader at a time, as a TLS
// connection has.
type conn struct {
	net.Conn
	buffer, left []byte    // left is what of the buffer was not returned yet
	err          error     // is returned after that
	came         time.Time // when the last read ended
	busy         bool
	row          int       // reads in a row that contradict busy
	quiet        time.Time // until when it is not read
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.left) == 0 && c.err == nil {
		c.leaveAlone()
		var n int
		n, c.err = c.Conn.Read(c.buffer)
		c.left = c.buffer[:n]
		c.count(n)
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	err := c.err
	c.err = nil // a deadline may be moved
	return 0, err
}

// leaveAlone waits until the connection may be read.
func (c *conn) leaveAlone() {
	wait := time.Until(c.quiet)
	if wait <= 0 {
		return
	}
	wakeFor(c.Conn, most)
	time.Sleep(wait)
	wakeFor(c.Conn, 1)
}

// count notes that a read has brought n bytes, and sets until when the connection is not read.
func (c *conn) count(n int) {
	now := time.Now()
	if c.busy && n < little || !c.busy && now.Sub(c.came) < soon {
		c.row++
	} else {
		c.row = 0
	}
	if c.row == inARow || c.busy && now.Sub(c.quiet) > silence {
		c.busy, c.row = !c.busy, 0
	}
	c.came = now
	if c.busy && n < len(c.buffer) {
		c.quiet = now.Add(gather)
	}
}

package metaonly

import (
	"context"
	"net"
	"time"
)

const (
	// gather is how long a busy connection is left alone after a read that has brought all there
	// was. What one update costs is mostly to wake up for it: of those that come meanwhile it is
	// paid once.
	gather = 20 * time.Millisecond
	// A connection is busy when so many reads in a row came soon after one another, until so many
	// bring little although it was left alone, or one comes after a silence. What comes now and
	// then is read when it comes: a caller may wait for what follows from it. What is little for
	// once may be an API server that had to wait for a processor.
	inARow, soon, little, silence = 5, 2 * time.Millisecond, 1 << 10, 100 * time.Millisecond
	// most is what one read brings.
	most = 64 << 10
)

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// gathering dials connections that are read in few and large pieces.
func gathering(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, buffer: make([]byte, most)}, nil
	}
}

// conn has one reader at a time, as a TLS connection has.
type conn struct {
	net.Conn
	buffer, left []byte    // left is what of the buffer was not handed on
	err          error     // comes after that
	came         time.Time // when the last read ended
	busy         bool
	row          int       // reads in a row that speak against what busy says
	quiet        time.Time // until when it is left alone
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

// count takes in that a read has brought so much, and finds out for how long the connection is left
// alone.
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

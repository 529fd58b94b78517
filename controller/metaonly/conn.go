package metaonly

import (
	"context"
	"net"
	"time"
)

const (
	// gather is how long a busy connection is left alone after a read that has brought all there was. What one update costs is mostly to
	// wake up for it: of those that come meanwhile it is paid once.
	gather = 10 * time.Millisecond
	// A connection is busy when so many reads in a row came soon after one another, until one brings little although it was left alone.
	// What comes now and then is read when it comes: a caller may wait for what follows from it.
	soon, inARow, little = 2 * time.Millisecond, 5, 1 << 10
	// most is what one read brings.
	most = 32 << 10
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
	row          int       // reads that came soon after one another; inARow: it is busy
	quiet        time.Time // until when it is left alone
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.left) == 0 && c.err == nil {
		time.Sleep(time.Until(c.quiet))
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

// count takes in that a read has brought so much, and finds out for how long the connection is left alone.
func (c *conn) count(n int) {
	now := time.Now()
	switch {
	case c.row == inARow:
		if n < little {
			c.row = 0
		}
	case now.Sub(c.came) < soon:
		c.row++
	default:
		c.row = 0
	}
	c.came = now
	if c.row == inARow && n < len(c.buffer) {
		c.quiet = now.Add(gather)
	}
}

package slim

import (
	"context"
	"net"
	"time"
)

const (
	// gather is how long a connection is left alone after a read that has brought all there was. What one update costs is mostly to
	// wake up for it: of those that come meanwhile it is paid once. The first event after a silence is read when it comes.
	gather = 10 * time.Millisecond
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
	quiet        time.Time // until when it is left alone
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.left) == 0 && c.err == nil {
		time.Sleep(time.Until(c.quiet))
		var n int
		n, c.err = c.Conn.Read(c.buffer)
		c.left = c.buffer[:n]
		if n < len(c.buffer) {
			c.quiet = time.Now().Add(gather)
		}
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

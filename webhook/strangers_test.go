package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// TestStrangersAreFew: a client that sends headers and does not end them is put off the line by those that come after it, and an API server is not.
func TestStrangersAreFew(t *testing.T) {
	dial := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			recognize(r)
		}
		_, _ = io.WriteString(w, "answer") // a client that is gone does not want it
	}))
	apiServer := dial()
	apiServer.ask("/token", "\r\n")
	first := dial()
	first.send("GET / HTTP/1.1\r\nHost: weir\r\nX: ")
	var last *client
	for range mostStrangers {
		last = dial()
		last.send("GET / HTTP/1.1\r\nHost: weir\r\nX: ")
	}
	if err := first.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first of %d strangers is still there: %v", mostStrangers+1, err)
	}
	last.finish("y\r\n\r\n")
	apiServer.ask("/", "\r\n")
}

// TestAddressThatIsUsedAgainIsAnother: an address comes back when its connection has ended.
func TestAddressThatIsUsedAgainIsAnother(t *testing.T) {
	s := newStrangers()
	one, again := &addressed{at: "a"}, &addressed{at: "a"}
	s.add(one)
	s.add(again)
	var closed []net.Conn
	for i := range mostStrangers {
		if c := s.add(&addressed{at: fmt.Sprint(i)}); c != nil {
			closed = append(closed, c)
		}
	}
	if len(closed) != 1 || closed[0] != again {
		t.Errorf("closed: %v, want the second alone", closed)
	}
	if len(s.order) != mostStrangers || len(s.byAddress) != mostStrangers {
		t.Errorf("%d and %d are remembered, at most %d", len(s.order), len(s.byAddress), mostStrangers)
	}
}

// addressed is a connection of a client at an address.
type addressed struct {
	net.Conn
	at string
}

func (a *addressed) RemoteAddr() net.Addr { return a }
func (a *addressed) Network() string      { return "tcp" }
func (a *addressed) String() string       { return a.at }

// client is a connection over TLS.
type client struct {
	*testing.T
	*tls.Conn
	in *bufio.Reader
}

// served serves a handler as the webhook is, until the test ends.
func served(t *testing.T, handler http.Handler) (dial func() *client) {
	t.Helper()
	other := httptest.NewTLSServer(nil) // its certificate is as good as any
	t.Cleanup(other.Close)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(address, handler, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &other.TLS.Certificates[0], nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	var open []*client
	t.Cleanup(func() {
		for _, c := range open {
			_ = c.Close() // the server may have closed it
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(10 * time.Second); s.StartedChecker()(nil) != nil; {
		if time.Now().After(end) {
			t.Fatal("the server does not start")
		}
	}
	return func() *client {
		t.Helper()
		d := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test looks at what the server does
		c, err := d.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		open = append(open, &client{t, c.(*tls.Conn), bufio.NewReader(c)})
		return open[len(open)-1]
	}
}

func (c *client) send(text string) {
	c.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.Fatal(err)
	}
}

// ask sends a request, and wants an answer.
func (c *client) ask(path, end string) {
	c.Helper()
	c.send("GET " + path + " HTTP/1.1\r\nHost: weir\r\n")
	c.finish(end)
}

// finish sends the end of a request, and wants an answer.
func (c *client) finish(end string) {
	c.Helper()
	c.send(end)
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "answer" {
		c.Errorf("answer %q, %v", body, err)
	}
	if err := r.Body.Close(); err != nil {
		c.Error(err)
	}
}

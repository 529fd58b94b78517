package webhook

import (
	"bufio"
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

// TestStrangersAreFew: a client that sends headers and does not end them is put off the line by
// those that come after it, and an API server is not.
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
	for range MostStrangers {
		last = dial()
		last.send("GET / HTTP/1.1\r\nHost: weir\r\nX: ")
	}
	if err := first.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first of %d strangers is still there: %v", MostStrangers+1, err)
	}
	last.finish("y\r\n\r\n")
	apiServer.ask("/", "\r\n")
}

// TestAFloodClosesItsOwnConnections: an API server that has just connected is one of many
// strangers, and stays, however many others come from elsewhere.
func TestAFloodClosesItsOwnConnections(t *testing.T) {
	c := &strangers{most: MostStrangers}
	apiServer := &addressed{at: "10.0.0.1:1"}
	c.add(apiServer)
	for i := range 100 * MostStrangers {
		switch over := c.add(&addressed{at: fmt.Sprint("10.0.0.2:", i)}); {
		case over == nil && i >= MostStrangers, over == apiServer:
			t.Fatalf("closed after %d: %v", i, over)
		case over != nil && over.(*addressed).at != fmt.Sprint("10.0.0.2:", i+1-MostStrangers):
			t.Fatalf("closed after %d: %s, and not the oldest", i, over.(*addressed).at)
		}
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
	s := NewServer(handler, MostStrangers)
	s.ReadHeaderTimeout = time.Hour // it closes nothing for that while a test runs
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: other.TLS.Certificates}))
	}()
	t.Cleanup(func() {
		_ = s.Close() // connections that are open are no error of it
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return func() *client {
		t.Helper()
		d := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test looks at what the server does
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the server may have closed it
		return &client{t, c.(*tls.Conn), bufio.NewReader(c)}
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

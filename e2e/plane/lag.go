package plane

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// etcdWatch is the call by which an API server learns from etcd what changes, and with it fills its
// watch caches.
const etcdWatch = "/etcdserverpb.Watch/Watch"

// A Lag stands between an API server and etcd. While it holds, the API server answers reads and
// takes writes as before, and its watch caches stay as they are: all its watches, its own
// controllers' too, show nothing that is written from then on.
type Lag struct {
	server   *http.Server
	listener net.Listener

	mu   sync.Mutex
	free chan struct{} // closed while nothing is held back
}

// newLag stands before the etcd of an address, on a port of loopback. gRPC is HTTP/2, here without
// TLS.
func newLag(etcd string) (*Lag, error) {
	target, err := url.Parse(etcd)
	if err != nil {
		return nil, fmt.Errorf("stand before etcd: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stand before etcd: %w", err)
	}
	var clear http.Protocols
	clear.SetUnencryptedHTTP2(true)
	l := &Lag{listener: listener, free: make(chan struct{})}
	close(l.free)
	l.server = &http.Server{
		Protocols: &clear,
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 10_000}, // a watch is one
		Handler: &httputil.ReverseProxy{
			Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ModifyResponse: l.see,
			Transport:      &http.Transport{Protocols: &clear},
			FlushInterval:  -1,
			ErrorLog:       log.New(io.Discard, "", 0), // an API server that is killed ends its calls
		},
	}
	go func() { _ = l.server.Serve(listener) }() // until it is closed
	return l, nil
}

// url is where the API server finds etcd.
func (l *Lag) url() string { return "http://" + l.listener.Addr().String() }

// Hold keeps what is written from now on from the API server's watch caches.
func (l *Lag) Hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if closed(l.free) {
		l.free = make(chan struct{})
	}
}

// Release lets the API server have what was held back, and what comes.
func (l *Lag) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !closed(l.free) {
		close(l.free)
	}
}

func (l *Lag) close() { _ = l.server.Close() } // whoever used it is gone

func (l *Lag) see(r *http.Response) error {
	if r.Request.URL.Path == etcdWatch {
		r.Body = &heldBody{ReadCloser: r.Body, lag: l, ctx: r.Request.Context()}
	}
	return nil
}

// heldBody hands on what it has read once nothing is held back.
type heldBody struct {
	io.ReadCloser
	lag *Lag
	ctx context.Context //nolint:containedctx // the request's, whose body it is
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.lag.mu.Lock()
	free := b.lag.free
	b.lag.mu.Unlock()
	select {
	case <-free:
		return n, err
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

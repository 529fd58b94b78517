package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
)

// SocketVariable is an environment variable that names the socket of Serve, for a command that is
// run in the cluster.
const SocketVariable = "E2E_NODE_SOCKET"

var socket = filepath.Join(dir, "socket")

// Serve lets other processes of root lose and replace the node. It returns the socket to ask at,
// and what ends it: that waits for what is under way.
func (n *Node) Serve() (path string, stop func() error, err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, fmt.Errorf("serve the node: %w", err)
	}
	var (
		mu     sync.Mutex
		mux    = http.NewServeMux()
		server = &http.Server{Handler: mux}
		done   = make(chan error, 1)
	)
	for pattern, do := range map[string]func(context.Context) error{
		"POST /lose": n.Lose, "POST /replace": n.Replace,
		"POST /collectors/on":  func(ctx context.Context) error { return n.Collect(ctx, true) },
		"POST /collectors/off": func(ctx context.Context) error { return n.Collect(ctx, false) },
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if err := do(r.Context()); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	go func() { done <- server.Serve(listener) }()
	return socket, func() error {
		err := server.Shutdown(context.Background()) // who asked is gone, and so is the context of what it asked for
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// A Remote is a node that another process has started.
type Remote struct{ client *http.Client }

// NewRemote asks at the socket of Serve.
func NewRemote(path string) *Remote {
	return &Remote{&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}}
}

// Lose is that of Node.
func (r *Remote) Lose(ctx context.Context) error { return r.ask(ctx, "lose") }

// Replace is that of Node.
func (r *Remote) Replace(ctx context.Context) error { return r.ask(ctx, "replace") }

// Collect is that of Node.
func (r *Remote) Collect(ctx context.Context, on bool) error {
	if on {
		return r.ask(ctx, "collectors/on")
	}
	return r.ask(ctx, "collectors/off")
}

func (r *Remote) ask(ctx context.Context, what string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/"+what, nil)
	if err != nil {
		return err
	}
	answer, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(text)))
	}
	return err
}

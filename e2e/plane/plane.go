package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// A Plane is a running control plane.
type Plane struct {
	// Config is the cluster administrator's, without a client-side limit.
	Config *rest.Config
	// Kubeconfig is a file that says the same.
	Kubeconfig string
	// Dir holds the data, the certificates, and one log per child.
	Dir string
	// AuditLog is the file of Options.Audit; empty without it.
	AuditLog string

	opts Options
	out  io.Writer
	pki  *pki
	port int // of the API server; the same over restarts
	etcd int // where clients reach it, and peers would
	peer int

	mu       sync.Mutex
	bins     Binaries     // of this plane, whatever go.mod says meanwhile
	children []*Child     // in the order of their start
	lags     []*Lag       // of API servers that were added
	ports    map[Part]int // where kube-controller-manager and -scheduler serve
	stopping chan struct{}
	stopped  chan struct{}
	stopErr  error
	unhook   func() bool
}

// Start builds what is missing and returns when the API server is ready, the
// default namespace exists, and everything else asked for reports healthy. The
// plane stops when ctx ends.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	out := opts.Out
	if out == nil {
		out = io.Discard
	}
	bins, err := Build(ctx, out, opts.parts()...)
	if err != nil {
		return nil, err
	}
	dir := opts.Dir
	if dir == "" {
		dir, err = os.MkdirTemp("", "weir-plane-")
	} else if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("make the plane's directory: %w", err)
	}
	p := &Plane{
		Dir: dir, opts: opts, out: out, ports: map[Part]int{}, bins: bins,
		stopping: make(chan struct{}), stopped: make(chan struct{}),
	}
	if err := p.boot(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	// Children are not tied to ctx one by one: they have to leave in order.
	p.mu.Lock()
	p.unhook = context.AfterFunc(ctx, func() { _ = p.Stop() })
	p.mu.Unlock()
	return p, nil
}

func (p *Plane) boot(ctx context.Context) error {
	var err error
	if p.pki, err = newPKI(filepath.Join(p.Dir, "pki"), p.opts.address()); err != nil {
		return err
	}
	if err := p.startEtcd(ctx, p.bins[Etcd]); err != nil {
		return err
	}
	if err := p.startAPIServer(ctx, p.bins[APIServer]); err != nil {
		return err
	}
	if p.opts.Controllers != None {
		if err := p.StartController(ctx, p.opts.Controllers, p.opts.ControllerManagerFlags...); err != nil {
			return err
		}
	}
	if p.opts.Scheduler {
		if err := p.startScheduler(ctx, p.bins[Scheduler]); err != nil {
			return err
		}
	}
	if p.opts.Kwok {
		return p.startKwok(ctx, p.bins[Kwok])
	}
	return nil
}

// Stop ends the children in the reverse order of their start, waits for them,
// and removes the directory unless Options.Dir named it. Only the first call
// does it; the others wait for it and return the same.
func (p *Plane) Stop() error {
	p.mu.Lock()
	if closed(p.stopping) {
		p.mu.Unlock()
		<-p.stopped
		return p.stopErr
	}
	close(p.stopping)
	if p.unhook != nil {
		p.unhook()
	}
	children, lags := slices.Clone(p.children), p.lags
	p.mu.Unlock()

	for _, c := range slices.Backward(children) {
		if p.opts.Dir == "" {
			// The data are not read again: there is nothing to leave in
			// order, and watches make the API server's end take long.
			c.Kill()
		} else if err := c.Stop(DefaultGrace); err != nil {
			fmt.Fprintf(p.out, "plane: %v\n", err)
		}
	}
	for _, l := range lags {
		l.close()
	}
	if p.opts.Dir == "" {
		if err := os.RemoveAll(p.Dir); err != nil {
			p.stopErr = fmt.Errorf("remove the plane's directory: %w", err)
		}
	}
	close(p.stopped)
	return p.stopErr
}

// Child is a part that runs, or nil.
func (p *Plane) Child(part Part) *Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.children {
		if c.Name == string(part) {
			return c
		}
	}
	return nil
}

// start runs a child of the plane, for the first time or again. It does not
// race with Stop: either Stop sees the child or the child is not started.
func (p *Plane) start(ctx context.Context, c *Child) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if closed(p.stopping) {
		return fmt.Errorf("start %s: the plane is stopping", c.Name)
	}
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if !slices.Contains(p.children, c) {
		p.children = append(p.children, c)
	}
	return nil
}

// binary builds a part that was not asked for at the start, once.
func (p *Plane) binary(ctx context.Context, part Part) (string, error) {
	p.mu.Lock()
	path := p.bins[part]
	p.mu.Unlock()
	if path != "" {
		return path, nil
	}
	bins, err := Build(ctx, p.out, part)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bins[part] = bins[part]
	return bins[part], nil
}

// CAFile is the certificate of the authority that signs every identity.
func (p *Plane) CAFile() string { return p.pki.file("ca.crt") }

func (p *Plane) log(part Part) string {
	return filepath.Join(p.Dir, string(part)+".log")
}

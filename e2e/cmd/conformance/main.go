// Command conformance runs Kubernetes' own end-to-end tests of garbage
// collection against Weir, on a control plane whose built-in collectors are off.
//
//	go run ./cmd/conformance [--weir=PATH] [--focus=REGEXP --want=N] [--gc] [--shadow] [--api-servers=2]
//
// With --api-servers=2 Weir and the tests reach two API servers on one etcd, connection by
// connection.
//
// With --gc Weir runs as in tests of operators, by weir gc.
//
// With --shadow the built-in collectors are on, and Weir looks on in shadow mode: there must be no
// difference but those on purpose.
//
// Of namespaces: --focus='\[sig-api-machinery\] (Namespaces|OrderedNamespaceDeletion)' --want=9
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

type options struct {
	weir, focus   string
	want, servers int
	shadow, gc    bool
	dir           string // of all files
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.weir, "weir", "", "the weir binary; default: $WEIR, or built from this repository")
	flag.StringVar(&o.focus, "focus", `\[sig-api-machinery\] Garbage collector`, "regular expression of the specs to run")
	flag.IntVar(&o.want, "want", 11, "how many specs have to pass")
	flag.BoolVar(&o.shadow, "shadow", false, "the built-in collectors work, and Weir compares in shadow mode")
	flag.BoolVar(&o.gc, "gc", false, "Weir runs by weir gc")
	flag.IntVar(&o.servers, "api-servers", 1, "how many API servers there are, behind a load balancer if they are several")
	flag.Parse()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.dir, err = os.MkdirTemp("", "weir-conformance-"); err != nil {
		return err
	}
	// A failure is looked into afterwards.
	defer func() {
		if err == nil {
			err = os.RemoveAll(o.dir)
		} else {
			fmt.Fprintln(out, "logs are in", o.dir)
		}
	}()
	binary, err := o.binary(ctx)
	if err != nil {
		return err
	}
	controllers := plane.WithoutCollectors
	if o.shadow {
		controllers = plane.All
	}
	fmt.Fprintln(out, "building and starting a control plane with the controllers", controllers)
	bins, err := plane.Build(ctx, out, plane.E2ETest)
	if err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Options{
		Controllers: controllers, Scheduler: true, Kwok: true, Out: out, Dir: filepath.Join(o.dir, "plane"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	w, kubeconfig, end, err := o.start(ctx, binary, p)
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop(plane.DefaultGrace) }() // it is to end, no matter how

	started := time.Now()
	result, err := runSuite(ctx, out, bins[plane.E2ETest], kubeconfig, o.focus, o.dir)
	if err != nil {
		return err
	}
	if err := w.Ended(); err != nil { // what the tests then proved is not its work
		return fmt.Errorf("weir: %w; its log ends with\n%s", err, w.Tail(20))
	}
	found, err := end(ctx)
	fmt.Fprint(out, found)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d passed, %d failed (%s)\n", len(result.passed), len(result.failed), time.Since(started).Round(time.Second))
	if len(result.failed) > 0 || len(result.passed) != o.want {
		return fmt.Errorf("%d of %d passed\n  %s", len(result.passed), o.want, strings.Join(result.failed, "\n  "))
	}
	return nil
}

// balanced starts the API servers that are missing, and returns the kubeconfig by which all of them
// are reached by turns.
func (o options) balanced(ctx context.Context, p *plane.Plane) (string, error) {
	hosts := []string{p.Config.Host}
	for len(hosts) < o.servers {
		s, err := p.AddAPIServer(ctx)
		if err != nil {
			return "", err
		}
		hosts = append(hosts, s.Config.Host)
	}
	if len(hosts) == 1 {
		return p.Kubeconfig, nil
	}
	b, err := plane.NewBalancer(ctx, hosts...)
	if err != nil {
		return "", err
	}
	return b.Kubeconfig(p.Kubeconfig)
}

// start runs weir. The tests are to use its kubeconfig; end is to be called when they are over, and
// says what shadow mode has found.
func (o options) start(ctx context.Context, binary string, p *plane.Plane) (w *weir.Process, kubeconfig string, end func(context.Context) (string, error), err error) {
	if kubeconfig, err = o.balanced(ctx, p); err != nil {
		return nil, "", nil, err
	}
	how := weir.Options{Binary: binary, Kubeconfig: kubeconfig, Dir: o.dir, LeaderElect: true}
	if !o.shadow {
		start := weir.Start
		if o.gc {
			start = weir.StartGC
		}
		w, err = start(ctx, how)
		return w, kubeconfig, func(context.Context) (string, error) { return "", nil }, err
	}
	s, err := weir.StartShadow(ctx, how, shadowLate)
	return s.Process, kubeconfig, func(ctx context.Context) (string, error) { return s.End(ctx) }, err
}

// shadowLate is what users have.
const shadowLate = 2 * time.Minute

func (o options) binary(ctx context.Context) (string, error) {
	if o.weir != "" {
		return weir.Named(o.weir)
	}
	return weir.Binary(ctx, o.dir)
}

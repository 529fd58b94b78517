// Command bench measures Weir and the reference side by side on one control plane, and both against
// the floor: the same requests, sent plainly.
//
//	go run ./cmd/bench [--target=collecting] [--only=RE] [--rounds=3] [--out=FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

type options struct {
	weir, before, plugin string

	n, rounds, many, namespaceN, objects int

	limit  time.Duration
	target string
	only   *regexp.Regexp
	out    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run, args := measureAll, os.Args[1:]
	if len(args) > 0 && args[0] == emptyWebhook {
		run, args = serveEmpty, args[1:]
	}
	if err := run(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measureAll(ctx context.Context, args []string) error {
	o := options{only: regexp.MustCompile("")}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.StringVar(&o.weir, "weir", "../bin/weir", "the weir binary")
	flags.StringVar(&o.before, "weir-before", "", "an older weir binary, which takes the place of the reference wherever that collects")
	flags.StringVar(&o.plugin, "kubectl-weir", "../bin/kubectl-weir", "the kubectl-weir binary")
	flags.IntVar(&o.n, "n", 5000, "dependents; of the reference at its default limits a 25th")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds, of which the median is told")
	flags.IntVar(&o.many, "many", 100000, "objects, where memory, a start, back-fill and questions are measured")
	flags.IntVar(&o.namespaceN, "namespace-n", 20000, "ConfigMaps in the namespace that is full")
	flags.IntVar(&o.objects, "objects", 1000000, "objects of many kinds, at scale")
	flags.DurationVar(&o.limit, "limit", 24*time.Hour,
		"how long all may take; each work has one round at least until then, and the report names those with fewer rounds")
	flags.StringVar(&o.target, "target", "", "measure only what belongs to collecting, webhook, undo, process or scale; all but scale by default")
	flags.Func("only", "regular expression of the work to measure, and nothing else", func(v string) (err error) {
		o.only, err = regexp.Compile(v)
		return err
	})
	flags.StringVar(&o.out, "out", "", "write what was measured to this file as well, at the end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b, err := start(ctx, o)
	if err != nil {
		return err
	}
	err = b.run(ctx, b.rows())
	// What was measured before a Ctrl-C took long to measure, too.
	return errors.Join(err, b.Stop(), tell(b.text(command(flags)), o.out))
}

// tell says what was measured, and writes it to a file, if one is named. Where nothing was, the
// file stays as it is.
func tell(text, file string) error {
	fmt.Print(text)
	if text == "" || file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// command repeats what was asked for, without where files are on this machine.
func command(flags *flag.FlagSet) string {
	s := "go run ./cmd/bench"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "weir", "kubectl-weir", "out":
		case "weir-before", "only":
			s += " --" + f.Name + "=…"
		default:
			s += fmt.Sprintf(" --%s=%s", f.Name, f.Value)
		}
	})
	return s
}

type bench struct {
	options
	*plane.Plane
	report
	started time.Time
	row     string        // is being measured
	due     time.Duration // after the start: until when rounds of it may begin

	admin clients
	self  clients // Weir's, and the floor's
	user  clients // no known one: policies judge it

	systems         []system // in the order in which they take turns
	lifted, limited system   // the reference without limits, and at its defaults

	full *load.Population // once the cluster is filled
}

// clients are those of an identity.
type clients struct {
	*rest.Config
	kubeconfig string
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	kube       kubernetes.Interface
}

func as(cfg *rest.Config, kubeconfig string, err error) (clients, error) {
	c := clients{Config: cfg, kubeconfig: kubeconfig}
	if err == nil {
		c.dynamic, err = dynamic.NewForConfig(cfg)
	}
	if err == nil {
		c.metadata, err = metadata.NewForConfig(cfg)
	}
	if err == nil {
		c.kube, err = kubernetes.NewForConfig(cfg)
	}
	return c, err
}

// of are requests about a population.
func (c clients) of(p *load.Population) metadata.ResourceInterface {
	return c.metadata.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
}

// start starts the control plane.
func start(ctx context.Context, o options) (b *bench, err error) {
	// Before the plane boots: a wrong path should cost nothing.
	for _, path := range []*string{&o.weir, &o.before, &o.plugin} {
		if *path != "" {
			if *path, err = weir.Named(*path); err != nil {
				return nil, err
			}
		}
	}
	if _, err = plane.Build(ctx, os.Stderr, plane.ControllerManager); err != nil {
		return nil, err
	}
	var env []string
	if o.target == scaled {
		// An API server keeps some 6 GB of a million objects, of which it would take twice as much
		// before it collects its garbage.
		env = append(env, "GOMEMLIMIT=13GiB")
	}
	b = &bench{options: o, started: time.Now()}
	b.say("starting the control plane")
	if b.Plane, err = plane.Start(ctx, plane.Options{Out: os.Stderr, APIServerEnv: env}); err != nil {
		return nil, err
	}
	b.admin, err = as(b.Config, b.Kubeconfig, nil)
	if err == nil {
		b.self, err = as(load.Weir(ctx, b.Plane))
	}
	if err == nil {
		b.user, err = as(load.User(ctx, b.Plane, "bench"))
	}
	if err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	b.lifted = b.reference("reference", "--kube-api-qps=100000", "--kube-api-burst=100000",
		fmt.Sprintf("--concurrent-gc-syncs=%d", syncs), fmt.Sprintf("--concurrent-namespace-syncs=%d", syncs))
	b.limited = b.reference("reference, default")
	b.systems = []system{b.weirAs("weir", o.weir), b.lifted}
	if o.before != "" {
		b.systems[1] = b.weirAs(weirBefore, o.before)
	}
	return b, nil
}

// weirBefore is what the older Weir is called.
const weirBefore = "weir before"

// syncs are the workers of each controller of the reference whose limits are lifted: the default of
// 10 for namespaces would limit it, too.
const syncs = 64

// say tells the progress, with the time since the start: silence looks like a hang.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: %4.0f s  %s\n", time.Since(b.started).Seconds(), fmt.Sprintf(format, args...))
}

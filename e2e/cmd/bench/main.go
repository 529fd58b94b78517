// Command bench measures Weir and the reference side by side on one control
// plane, and both against the floor: the same requests, sent plainly.
//
//	go run ./cmd/bench --weir=PATH [--rounds=3] [--only=RE] [--out=FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

type options struct {
	weir      string
	before    string
	plugin    string
	weirFlags []string
	n         int
	defaultN  int
	rounds    int
	memory    int
	coOwners  int
	objects   int

	namespaceN int
	namespaces int
	limit      time.Duration
	only       *regexp.Regexp
	treeTools  []string
	out        string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == load.EmptyGuard {
		if err := load.ServeEmpty(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := options{only: regexp.MustCompile("")}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.StringVar(&o.weir, "weir", "", "the weir binary; empty measures the reference alone")
	flags.StringVar(&o.before, "weir-before", "", "an older weir binary, which takes the place of the reference wherever that collects beside Weir")
	flags.StringVar(&o.plugin, "kubectl-weir", "", "the kubectl-weir binary; empty leaves out what people ask")
	flags.Func("weir-flag", "flag for weir (repeatable)", func(v string) error {
		o.weirFlags = append(o.weirFlags, v)
		return nil
	})
	flags.IntVar(&o.n, "n", 5000, "dependents")
	flags.IntVar(&o.defaultN, "default-n", 200, "dependents for the reference at its default limits; 0 leaves it out")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds, of which the median is told")
	flags.IntVar(&o.memory, "memory", 100000, "objects for the measurement of memory; 0 leaves it out")
	flags.IntVar(&o.coOwners, "co-owners", 100000, "objects that each name an owner that never was; 0 leaves them out")
	flags.IntVar(&o.objects, "objects", 0,
		"objects of many kinds in the cluster that is measured at scale; 0 leaves it out")
	flags.IntVar(&o.namespaceN, "namespace-n", 20000, "ConfigMaps in the namespace that is full; 0 leaves it out")
	flags.IntVar(&o.namespaces, "namespaces", 100, "namespaces that are deleted together; 0 leaves them out")
	flags.DurationVar(&o.limit, "limit", 0, "how long all of it may take; each work has one round at least until then, and the report names those with fewer than were asked for; 0: as long as it takes")
	flags.Func("only", "regular expression of the work to measure, and nothing else", func(v string) (err error) {
		o.only, err = regexp.Compile(v)
		return err
	})
	flags.Func("tree-tool", "another program that shows the tree of an object, asked as NAME TYPE NAME -n NAMESPACE (repeatable)", func(v string) error {
		o.treeTools = append(o.treeTools, v)
		return nil
	})
	flags.StringVar(&o.out, "out", "", "write what was measured to this file as well, at the end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	r := newReport(b)
	r.command = command(flags)
	err = b.run(ctx, r)
	// What was measured before a Ctrl-C took long to measure, too.
	return errors.Join(err, b.plane.Stop(), tell(r.text(), o.out))
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

// weirBefore is what the older Weir is called.
const weirBefore = "weir before"

// command repeats what was asked for, without where files are on this machine.
func command(flags *flag.FlagSet) string {
	s := "go run ./cmd/bench"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "weir", "weir-before", "kubectl-weir", "out":
			s += fmt.Sprintf(" --%s=%s", f.Name, filepath.Base(f.Value.String()))
		case "only", "weir-flag", "tree-tool":
			s += " --" + f.Name + "=…"
		default:
			s += fmt.Sprintf(" --%s=%s", f.Name, f.Value)
		}
	})
	return s
}

func newBench(ctx context.Context, o options) (*bench, error) {
	b := &bench{options: o, started: time.Now()}
	if o.before != "" && o.weir == "" {
		return nil, errors.New("--weir-before needs --weir")
	}
	// Before the plane boots: a wrong path should cost nothing.
	var err error
	for _, path := range []*string{&b.weir, &b.before} {
		if *path, err = found(*path); err != nil {
			return nil, fmt.Errorf("find weir: %w", err)
		}
	}
	if _, err = plane.Build(ctx, os.Stderr, plane.ControllerManager); err != nil {
		return nil, err
	}
	b.say("starting the control plane")
	if b.plane, err = plane.Start(ctx, plane.Options{Out: os.Stderr, APIServerEnv: apiServerEnv(o.objects)}); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx); err != nil {
		_ = b.plane.Stop() // the first error says more
		return nil, err
	}
	return b, nil
}

// found is the whole path of a program that must be there; "" stays.
func found(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func (b *bench) prepare(ctx context.Context) error {
	var err error
	if b.cfg, b.kubeconfig, err = load.ServiceAccount(ctx, b.plane); err != nil {
		return err
	}
	collectors := func(name string, flags ...string) load.System {
		return load.Reference(b.plane, name, plane.Collectors, flags...)
	}
	b.lifted = collectors("reference", "--kube-api-qps=100000", "--kube-api-burst=100000",
		fmt.Sprintf("--concurrent-gc-syncs=%d", syncs), fmt.Sprintf("--concurrent-namespace-syncs=%d", syncs))
	b.limited = collectors("reference, default")
	b.systems = []load.System{b.lifted}
	if b.weir != "" {
		b.systems = []load.System{load.Weir(b.plane, b.weir, b.kubeconfig, b.weirFlags...), b.lifted}
	}
	if b.before != "" {
		b.systems[1] = load.Weir(b.plane, b.before, b.kubeconfig, b.weirFlags...)
		b.systems[1].Name = weirBefore
	}
	return nil
}

// syncs are the workers of each controller of the reference whose limits are lifted: the default of
// 10 for namespaces would limit it, too.
const syncs = 64

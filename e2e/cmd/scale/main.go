// Command scale measures Weir in a cluster of a million objects, on a control plane of its own,
// within a limit of time. What it reached when the time was up it reports.
//
//	go run ./cmd/scale --weir=PATH [--objects=1000000] [--limit=39m] [--out=FILE] [--samples=FILE]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/scale"
)

type options struct {
	weir      string
	weirFlags []string
	objects   int
	limit     time.Duration
	lease     time.Duration
	updates   int
	updateFor time.Duration
	asks      int
	out       string
	samples   string
	dir       string
}

// namespaces is how many the objects are in.
const namespaces = 50

// apiServerMemory is past what the API server keeps of a million objects, some 6 GB, of which it
// would take twice as much before it collects its garbage, and leaves room for everything else on a
// machine of 24 GiB.
const apiServerMemory = "13GiB"

// fewest is how many objects there have to be: with less a tree has nothing in its middle.
const fewest = 100 * namespaces

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	b := &bench{options: o, started: time.Now(), report: report{objects: o.objects, limit: o.limit, lease: o.lease, date: time.Now().UTC()}}
	b.say("starting the control plane")
	if b.plane, err = plane.Start(ctx, plane.Options{Out: os.Stderr, Dir: o.dir, APIServerEnv: []string{"GOMEMLIMIT=" + apiServerMemory}}); err != nil {
		return err
	}
	err = b.measure(ctx)
	return errors.Join(err, b.plane.Stop(), b.tell())
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("scale", flag.ExitOnError)
	flags.StringVar(&o.weir, "weir", "", "the weir binary")
	flags.Func("weir-flag", "flag for weir (repeatable)", func(v string) error { o.weirFlags = append(o.weirFlags, v); return nil })
	flags.IntVar(&o.objects, "objects", 1000000, "how many objects there are")
	flags.DurationVar(&o.limit, "limit", 39*time.Minute, "when to end, whatever has been measured then")
	flags.DurationVar(&o.lease, "lease", 15*time.Second, "how long weir's Lease is valid")
	flags.IntVar(&o.updates, "updates", 2000, "updates a second")
	flags.DurationVar(&o.updateFor, "update-for", time.Minute, "how long there are updates, if the API server takes so many")
	flags.IntVar(&o.asks, "asks", 3000, "deletes for a trial that the webhook is asked about")
	flags.StringVar(&o.out, "out", "", "write what was measured to this file as well, at the end")
	flags.StringVar(&o.samples, "samples", "", "write a table of what was sampled each second to this file (CSV)")
	flags.StringVar(&o.dir, "dir", "", "keep the plane's files here")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.objects < fewest {
		return o, fmt.Errorf("--objects %d: must be at least %d", o.objects, fewest)
	}
	o.objects -= o.objects % namespaces
	// Before the plane boots: a wrong path should cost nothing.
	if o.weir, err = filepath.Abs(o.weir); err == nil {
		_, err = os.Stat(o.weir)
	}
	if err != nil {
		return o, fmt.Errorf("find weir: %w", err)
	}
	return o, nil
}

// tell says what was measured, and writes it to files, where they are named. Where nothing was,
// they stay as they are.
func (b *bench) tell() error {
	text := b.report.text()
	fmt.Print(text)
	var err error
	if b.out != "" {
		err = os.WriteFile(b.out, []byte(text), 0o644)
	}
	if b.samples == "" || len(b.sampled) == 0 {
		return err
	}
	var table bytes.Buffer
	return errors.Join(err, scale.WriteCSV(&table, b.sampled, processes), os.WriteFile(b.samples, table.Bytes(), 0o644))
}

// say tells the progress, with the time since the start: silence looks like a hang.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "scale: %4.0f s  %s\n", time.Since(b.started).Seconds(), fmt.Sprintf(format, args...))
}

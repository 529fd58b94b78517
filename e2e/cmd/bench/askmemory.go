package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// askedCost is what a question costs the API server.
type askedCost struct {
	question      string
	before, first uint64             // bytes that it holds before it is asked, and at the most while it is asked once
	often         uint64             // and while it is asked some times more
	lists         map[string]float64 // lists of each kind, pages counted one by one, when it is asked once
}

// calmTime is how long the API server is left alone after it has started: it reads what it keeps in
// memory.
const calmTime = 15 * time.Second

// measureAskedCosts asks about all of the cluster, each time of an API server that was started a
// moment ago: what it took for an earlier answer it does not give back.
func (b *bench) measureAskedCosts(ctx context.Context, r *report) error {
	for _, q := range []struct {
		question string
		args     []string
	}{
		{"plan of the delete of an object with all these dependents", []string{"plan", "configmap", "owner", "-n", b.full.Namespace}},
		{"pending, the whole cluster", []string{"pending", "-A"}},
	} {
		if err := b.plane.RestartAPIServer(ctx); err != nil {
			return err
		}
		if err := load.Pause(ctx, calmTime); err != nil {
			return err
		}
		cost := askedCost{question: q.question, lists: map[string]float64{}}
		ask := func(times int) func() error {
			return func() error {
				_, err := b.ask(ctx, times, b.plugin, append(q.args, "--cache-dir", filepath.Join(b.plane.Dir, "cache"))...)
				return err
			}
		}
		was, err := load.Lists(ctx, b.plane.Metrics)
		if err != nil {
			return err
		}
		server := b.plane.Child(plane.APIServer)
		if cost.before, cost.first, err = load.Peak(server, ask(1)); err != nil {
			return err
		}
		is, err := load.Lists(ctx, b.plane.Metrics)
		if err != nil {
			return err
		}
		for kind, n := range is {
			if n -= was[kind]; n > 0 {
				cost.lists[kind] = n
			}
		}
		if _, cost.often, err = load.Peak(server, ask(askedTimes)); err != nil {
			return err
		}
		b.say("%s: the API server holds %.0f MB before, %.0f MB at the most, and %.0f MB when it is asked %d times more; %s", q.question,
			mb(cost.before), mb(cost.first), mb(cost.often), askedTimes, cost.requests())
		r.askedCosts = append(r.askedCosts, cost)
	}
	return nil
}

// requests says how many lists there were: of one kind there are several where they have pages.
func (c *askedCost) requests() string {
	total, most, of := 0.0, 0.0, ""
	for kind, n := range c.lists {
		total += n
		if n > most || n == most && kind < of {
			most, of = n, kind
		}
	}
	return fmt.Sprintf("%.0f lists of %d kinds, %.0f of %s", total, len(c.lists), most, of)
}

func (r *report) writeAskedCosts(s *strings.Builder) {
	if len(r.askedCosts) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| what a question costs the API server, with %d objects | holds before | at the most | asked %d times more | requests, asked once |\n|---|---|---|---|---|\n", r.objects, askedTimes)
	for _, c := range r.askedCosts {
		fmt.Fprintf(s, "| %s | %.0f MB | %.0f MB, %.2f× | %.0f MB, %.2f× | %s |\n", c.question, mb(c.before), mb(c.first), float64(c.first)/float64(c.before),
			mb(c.often), float64(c.often)/float64(c.before), c.requests())
	}
}

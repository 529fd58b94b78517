// Command queries runs the queries of the chart's alerts and dashboard against metrics that were
// scraped from processes of Weir:
//
//	queries JOB=FILE…
//
// A series that a query selects and no file has, and a panel that would stay empty, are errors. It
// runs in the directory of the charts' module, which has Prometheus; e2e, which has the processes,
// must not be built with its versions.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "queries:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	all, err := read("weir/files/alerts.yaml", "weir/files/dashboard.json")
	if err != nil {
		return err
	}
	store, err := teststorage.NewWithError()
	if err != nil {
		return fmt.Errorf("make a store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	began := time.Unix(0, 0).UTC()
	end := began.Add(2 * time.Hour)
	for _, arg := range args {
		job, file, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: must be JOB=FILE", arg)
		}
		if err := load(store, job, file, began, end); err != nil {
			return err
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, EnableAtModifier: true,
		EnableNegativeOffset: true})
	var errs []error
	for _, q := range all {
		errs = append(errs, q.ask(func(expr string) (int, error) { return count(engine, store, expr, end) }))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("%d queries find what they ask for\n", len(all))
	return nil
}

// query is a query of an alert or a panel. Alerts are silent while all is well; panels never are.
type query struct {
	where, expr string
	silent      bool
}

// read returns the queries of alerts and panels.
func read(alerts, dashboard string) ([]query, error) {
	var rules []struct{ Alert, Expr string }
	data, err := os.ReadFile(alerts)
	if err == nil {
		err = yaml.Unmarshal(data, &rules)
	}
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if data, err = os.ReadFile(dashboard); err == nil {
		err = json.Unmarshal(data, &board)
	}
	if err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	var out []query
	for _, r := range rules {
		out = append(out, query{"alert " + r.Alert, r.Expr, true})
	}
	for _, p := range board.Panels {
		for _, t := range p.Targets {
			out = append(out, query{"panel " + p.Title, strings.ReplaceAll(t.Expr, "$__rate_interval", "5m"), false})
		}
	}
	if len(rules) == 0 || len(out) == len(rules) {
		return nil, fmt.Errorf("found %d alerts and %d queries of panels", len(rules), len(out)-len(rules))
	}
	return out, nil
}

// ask returns an error for each series of a query that is missing.
func (q query) ask(count func(expr string) (int, error)) error {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
	if err != nil {
		return fmt.Errorf("%s: %w", q.where, err)
	}
	var errs []error
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			for _, expr := range alternatives(v) {
				if n, err := count(expr); err != nil || n == 0 {
					errs = append(errs, fmt.Errorf("%s: no process tells %s (%w)", q.where, expr, errOr(err)))
				}
			}
		}
		return nil
	})
	if n, err := count(q.expr); err != nil || n == 0 && !q.silent {
		errs = append(errs, fmt.Errorf("%s: nothing answers to %s (%w)", q.where, q.expr, errOr(err)))
	}
	return errors.Join(errs...)
}

var errNothing = errors.New("no series")

func errOr(err error) error {
	if err == nil {
		return errNothing
	}
	return err
}

// alternatives returns selectors with one value for each label: of state=~"a|b" both must exist.
func alternatives(v *parser.VectorSelector) []string {
	out := []string{""}
	for _, m := range v.LabelMatchers {
		var next []string
		values := []string{m.Value}
		if m.Type == labels.MatchRegexp {
			values = strings.Split(m.Value, "|")
		}
		for _, before := range out {
			for _, value := range values {
				next = append(next, before+labels.MustNewMatcher(m.Type, m.Name, value).String()+",")
			}
		}
		out = next
	}
	for i := range out {
		out[i] = "{" + out[i] + "}"
	}
	return out
}

func count(engine *promql.Engine, store storage.Queryable, expr string, at time.Time) (int, error) {
	q, err := engine.NewInstantQuery(context.Background(), store, nil, expr, at)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	return len(v), err
}

// load stores scraped metrics as if they had been scraped every minute.
func load(store storage.Storage, job, file string, began, end time.Time) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	type sample struct {
		of    labels.Labels
		value float64
	}
	var samples []sample
	p := textparse.NewPromParser(data, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("parse metrics of %s: %w", job, err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var of labels.Labels
		p.Labels(&of)
		_, _, value := p.Series()
		samples = append(samples, sample{labels.NewBuilder(of).Set("job", job).Set("instance", job).Labels(), value})
	}
	if !slices.ContainsFunc(samples,
		func(s sample) bool { return strings.HasPrefix(s.of.Get(model.MetricNameLabel), "weir_") }) {
		return fmt.Errorf("%s tells nothing of Weir", job)
	}
	for at := began; !at.After(end); at = at.Add(time.Minute) {
		app := store.Appender(context.Background())
		for _, s := range samples {
			if _, err := app.Append(0, s.of, at.UnixMilli(), s.value); err != nil {
				return fmt.Errorf("store %s: %w", s.of, err)
			}
		}
		if err := app.Commit(); err != nil {
			return fmt.Errorf("store metrics of %s: %w", job, err)
		}
	}
	return nil
}

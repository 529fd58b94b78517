package charts

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// TestQueriesFindWhatProcessesTell runs the queries of alerts and dashboard against metrics that
// were scraped from processes of Weir, which the arguments name: -args JOB=FILE…. e2e has the
// processes, and must not be built with the versions of Prometheus. A series that a query selects
// and no file has, and a panel that would stay empty, are errors.
func TestQueriesFindWhatProcessesTell(t *testing.T) {
	if flag.NArg() == 0 {
		return // e2e's TestAlertsAndPanels gives them
	}
	store := teststorage.New(t)
	began := time.Unix(0, 0).UTC()
	end := began.Add(2 * time.Hour)
	for _, arg := range flag.Args() {
		job, file, _ := strings.Cut(arg, "=")
		scraped(t, store, job, read(t, file), began, end)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, EnableAtModifier: true,
		EnableNegativeOffset: true})
	count := func(where, expr string) int {
		q, err := engine.NewInstantQuery(context.Background(), store, nil, expr, end)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		defer q.Close()
		v, err := q.Exec(context.Background()).Vector()
		if err != nil {
			t.Errorf("%s: %s: %v", where, expr, err)
		}
		return len(v)
	}
	all := expressions(t)
	for where, expr := range all {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				for _, one := range alternatives(v) {
					if count(where, one) == 0 {
						t.Errorf("%s: no process tells %s", where, one)
					}
				}
			}
			return nil
		})
		if silent := strings.HasPrefix(where, "alert "); !silent && count(where, expr) == 0 { // alerts are silent while all is well
			t.Errorf("%s: nothing answers", where)
		}
	}
	t.Logf("%d queries find what they ask for", len(all))
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

// scraped stores metrics as if they had been scraped every minute.
func scraped(t *testing.T, store storage.Storage, job, text string, began, end time.Time) {
	t.Helper()
	type sample struct {
		of    labels.Labels
		value float64
	}
	var samples []sample
	for p := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false); ; {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("metrics of %s: %v", job, err)
		}
		if entry == textparse.EntrySeries {
			var of labels.Labels
			p.Labels(&of)
			_, _, value := p.Series()
			samples = append(samples, sample{labels.NewBuilder(of).Set("job", job).Set("instance", job).Labels(), value})
		}
	}
	if !slices.ContainsFunc(samples,
		func(s sample) bool { return strings.HasPrefix(s.of.Get(model.MetricNameLabel), "weir_") }) {
		t.Fatalf("%s tells nothing of Weir", job)
	}
	for at := began; !at.After(end); at = at.Add(time.Minute) {
		app := store.Appender(context.Background())
		var errs []error
		for _, s := range samples {
			_, err := app.Append(0, s.of, at.UnixMilli(), s.value)
			errs = append(errs, err)
		}
		if err := errors.Join(append(errs, app.Commit())...); err != nil {
			t.Fatal(fmt.Errorf("store metrics of %s: %w", job, err))
		}
	}
}

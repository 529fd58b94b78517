package cmd

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/webhook"
)

// rewrite has the pages of metrics and commands written (make generate), instead of compared.
var rewrite = flag.Bool("rewrite", false, "write docs/metrics.md and docs/reference")

// TestThePageOfMetricsIsWhatProcessesRegister: each metric once, in order, and with help.
func TestThePageOfMetricsIsWhatProcessesRegister(t *testing.T) {
	const file = "../docs/metrics.md"
	page, err := metricsPage()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(page)); diff != "" {
		t.Errorf("run make generate (-page +registered):\n%s", diff)
	}
}

// metricsPage is a page, in Markdown, of the metrics that Weir's processes register. It makes what
// registers them, and starts nothing.
func metricsPage() ([]byte, error) {
	all, err := allMetrics()
	if err != nil {
		return nil, err
	}
	var w bytes.Buffer
	w.WriteString(`# Metrics

<!-- make generate writes this page from what the processes register. -->

Each process serves its own at ` + "`/metrics`" + `; a controller in shadow mode counts as shadow. Each also
has those of client-go, of the Go runtime and of the process. [Alerts](alerts.md) are made of these.

| metric | type | labels | process | what it says |
|---|---|---|---|---|
`)
	for _, m := range all {
		processes := strings.Join(m.processes, ", ")
		if len(m.processes) == 3 {
			processes = "all"
		}
		fmt.Fprintf(&w, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, strings.Join(m.labels, ", "), processes,
			strings.ReplaceAll(m.help, "|", `\|`))
	}
	return w.Bytes(), nil
}

type metric struct {
	name, kind, help  string
	labels, processes []string
}

// allMetrics makes each process without an API server: none is asked before they run.
func allMetrics() ([]metric, error) {
	config := &rest.Config{Host: "https://weir.invalid"}
	state, err := live.New(live.Options{Config: config})
	if err != nil {
		return nil, err
	}
	found := map[string]metric{}
	for _, process := range []struct {
		name string
		make func(prometheus.Registerer) error
	}{
		{"controller", func(reg prometheus.Registerer) error {
			_, err := controller.New(controller.Options{
				Config: config, Policies: state, Canary: "weir-system", Brake: brake.DefaultLimits, Registry: reg})
			_, beside := controller.New(controller.Options{Config: config, Companion: true, Canary: "weir-system", Registry: reg})
			return errors.Join(err, beside, reg.Register(buildInfo("controller")))
		}},
		{"shadow", func(reg prometheus.Registerer) error {
			_, err := controller.New(controller.Options{Config: config, Shadow: true, Registry: reg})
			return errors.Join(err, reg.Register(buildInfo("controller")))
		}},
		{"webhook", func(reg prometheus.Registerer) error {
			_, followed := controller.NewFollowing(controller.Options{Config: config, Registry: reg})
			_, err := webhook.New(webhook.Options{Config: config, Policies: state, Takes: func(string) bool { return false }, Registry: reg})
			return errors.Join(followed, err, reg.Register(expiryOf(serving{})), reg.Register(buildInfo("webhook")))
		}},
	} {
		var seen registered
		if err := process.make(&seen); err != nil {
			return nil, fmt.Errorf("make the %s: %w", process.name, err)
		}
		for _, m := range seen.metrics {
			if m.help == "" || m.name == "" {
				return nil, fmt.Errorf("the %s has a metric without help, or one that cannot be read: %s %s", process.name, m.name, m.help)
			}
			if m.processes = found[m.name].processes; !slices.Contains(m.processes, process.name) {
				m.processes = append(m.processes, process.name)
			}
			found[m.name] = m
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b metric) int { return strings.Compare(a.name, b.name) }), nil
}

// registered is a registry that keeps what describes the metrics.
type registered struct{ metrics []metric }

// described is a description as its String has it: what it holds cannot be asked for.
var described = regexp.MustCompile(`^Desc{fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: {([^}]*)}, variableLabels: {([^}]*)}}$`)

// Register implements prometheus.Registerer.
func (r *registered) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.Describe(ch); close(ch) })
	for d := range ch {
		r.metrics = append(r.metrics, read(d, c))
	}
	return nil
}

// read tells a counter by its name, as Prometheus wants it to be (e2e holds all to that), and a
// histogram by what it can do.
func read(d *prometheus.Desc, c prometheus.Collector) metric {
	at := described.FindStringSubmatch(d.String())
	if at == nil {
		return metric{help: d.String()}
	}
	m := metric{name: at[1], kind: "gauge", labels: strings.FieldsFunc(at[4], func(r rune) bool { return r == ',' })}
	m.help, _ = strconv.Unquote(at[2])
	for _, label := range strings.FieldsFunc(at[3], func(r rune) bool { return r == ',' }) {
		name, _, _ := strings.Cut(label, "=")
		m.labels = append(m.labels, name)
	}
	_, histograms := c.(*prometheus.HistogramVec)
	_, histogram := c.(prometheus.Histogram)
	switch {
	case histograms, histogram:
		m.kind = "histogram"
	case strings.HasSuffix(m.name, "_total"):
		m.kind = "counter"
	}
	return m
}

// MustRegister implements prometheus.Registerer.
func (r *registered) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = r.Register(c)
	}
}

// Unregister implements prometheus.Registerer.
func (r *registered) Unregister(prometheus.Collector) bool { return false }

// TestMetricsAreReadAsTheyWereRegistered: what a description holds cannot be asked for, so it is
// read from what it prints, of which another version of the library may make something else.
func TestMetricsAreReadAsTheyWereRegistered(t *testing.T) {
	constant := prometheus.Labels{"component": "webhook", "version": "v1"}
	for name, c := range map[string]struct {
		registered prometheus.Collector
		want       metric
	}{
		"a counter": {prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_a_total", Help: "How many."}),
			metric{name: "weir_a_total", kind: "counter", help: "How many.", labels: []string{}}},
		"a gauge": {prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_a", Help: "How much."}),
			metric{name: "weir_a", kind: "gauge", help: "How much.", labels: []string{}}},
		"labels": {prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_a_total", Help: "How many."}, []string{"group", "resource"}),
			metric{name: "weir_a_total", kind: "counter", help: "How many.", labels: []string{"group", "resource"}}},
		"labels that are always the same": {prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_a", Help: "How much.", ConstLabels: constant}, []string{"kind"}),
			metric{name: "weir_a", kind: "gauge", help: "How much.", labels: []string{"kind", "component", "version"}}},
		"a histogram": {prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weir_a_seconds", Help: "How long."}),
			metric{name: "weir_a_seconds", kind: "histogram", help: "How long.", labels: []string{}}},
		"histograms": {prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_a_seconds", Help: "How long."}, []string{"verb"}),
			metric{name: "weir_a_seconds", kind: "histogram", help: "How long.", labels: []string{"verb"}}},
		"help with quotes, braces and a backslash": {prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_a", Help: `"a", {b} or c\d` + "\n"}),
			metric{name: "weir_a", kind: "gauge", help: `"a", {b} or c\d` + "\n", labels: []string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen registered
			seen.MustRegister(c.registered)
			if diff := cmp.Diff([]metric{c.want}, seen.metrics, cmp.AllowUnexported(metric{})); diff != "" {
				t.Errorf("(-registered +read):\n%s", diff)
			}
		})
	}
}

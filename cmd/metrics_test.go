package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

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

// TestPageOfMetricsIsATable: each metric once, in order, with all of its cells, and with help.
func TestPageOfMetricsIsATable(t *testing.T) {
	var page strings.Builder
	if err := WriteMetrics(&page); err != nil {
		t.Fatal(err)
	}
	last, rows := "", 0
	for line := range strings.Lines(page.String()) {
		if !strings.HasPrefix(line, "| `weir_") {
			continue
		}
		rows++
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, ""), "|")
		if len(cells) != 7 {
			t.Errorf("%d cells, want 5 and two ends: %s", len(cells), line)
			continue
		}
		name, process, help := strings.Trim(cells[1], " `"), strings.TrimSpace(cells[4]), strings.TrimSpace(cells[5])
		if name <= last || process == "" || help == "" {
			t.Errorf("after %s: %s", last, line)
		}
		last = name
	}
	if rows == 0 {
		t.Error("no metric is told")
	}
}

package weir

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-dev/weir/e2e/plane"
)

// Metrics are the metrics of one moment.
type Metrics map[string]*dto.MetricFamily

// Metrics reads them from a weir that serves them to everybody.
func (p *Process) Metrics(ctx context.Context) (Metrics, error) {
	text, err := p.Get(ctx, "/metrics", "")
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", p.Name, err)
	}
	return ParseMetrics(text)
}

// ParseMetrics reads the Prometheus text format.
func ParseMetrics(text string) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	return families, nil
}

// Sum adds up what a metric says for all series that have the labels, given as
// name, value, name, value…: of counters and gauges the value, of histograms how
// much was observed. A metric that is not there is 0.
func (m Metrics) Sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, series := range m[name].GetMetric() {
		if !matches(series, labels) {
			continue
		}
		sum += series.GetCounter().GetValue() + series.GetGauge().GetValue() +
			float64(series.GetHistogram().GetSampleCount())
	}
	return sum
}

// Has tells whether a metric has a series with these labels.
func (m Metrics) Has(name string, labels ...string) bool {
	return slices.ContainsFunc(m[name].GetMetric(), func(series *dto.Metric) bool { return matches(series, labels) })
}

func matches(series *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		if !slices.ContainsFunc(series.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}) {
			return false
		}
	}
	return true
}

// mostBusy is how long a process may have work without a pause: tests share clusters, and the
// machine may have other things to do.
const mostBusy = 3 * time.Minute

// AwaitIdle waits until nothing that it has seen is left to do. What the API
// server has not shown it yet is not counted: a caller that changed something
// makes sure first that weir has seen it.
func (p *Process) AwaitIdle(ctx context.Context) error {
	var depth, oldest float64
	var last error
	err := plane.Poll(ctx, mostBusy, func(ctx context.Context) (bool, error) {
		var m Metrics
		if m, last = p.Metrics(ctx); last != nil {
			return false, p.Ended() // one that is busy answers late
		}
		depth, oldest = m.Sum("workqueue_depth", "name", "graph"), m.Sum("weir_queue_oldest_seconds")
		return depth == 0 && oldest == 0, nil
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	if err != nil {
		return fmt.Errorf("wait for %s to be idle: %w (%.0f objects queued, the oldest for %.1f s)", p.Name, err, depth, oldest)
	}
	return nil
}

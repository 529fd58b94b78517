package load

import (
	"context"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counts are requests by verb.
type Counts map[string]float64

// Total leaves out watches: they are counted when they end, and follow nothing
// that a system does to an object.
func (c Counts) Total() float64 {
	total := 0.0
	for verb, n := range c {
		if verb != "WATCH" {
			total += n
		}
	}
	return total
}

func (c Counts) minus(o Counts) Counts {
	d := Counts{}
	for verb, n := range c {
		d[verb] = n - o[verb]
	}
	return d
}

// countRequests reads from the API server itself what it was asked about a
// kind since it started.
func countRequests(ctx context.Context, metrics func(context.Context) (string, error), kind Kind) (Counts, error) {
	text, err := metrics(ctx)
	if err != nil {
		return nil, err
	}
	families, err := parseMetrics(text)
	if err != nil {
		return nil, err
	}
	counts := Counts{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		l := labels(m)
		if l["group"] == kind.Group && l["resource"] == kind.Resource {
			counts[l["verb"]] += m.GetCounter().GetValue()
		}
	}
	return counts, nil
}

func parseMetrics(text string) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	return families, nil
}

// gauge is 0 for a metric that is not there.
func gauge(families map[string]*dto.MetricFamily, name string) float64 {
	for _, m := range families[name].GetMetric() {
		return m.GetGauge().GetValue()
	}
	return 0
}

func labels(m *dto.Metric) map[string]string {
	l := map[string]string{}
	for _, pair := range m.GetLabel() {
		l[pair.GetName()] = pair.GetValue()
	}
	return l
}

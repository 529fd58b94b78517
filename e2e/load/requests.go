package load

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// A request is what the API server's metrics tell of one.
type request struct{ verb, group, resource, subresource, code string }

// about is every request for a kind.
func about(kind Kind) func(request) bool {
	return func(r request) bool { return r.group == kind.Group && r.resource == kind.Resource }
}

// others is every request but those that the API server sends itself while
// nothing else runs: it renews its Lease and reads its own OpenAPI. No system
// sends these while it drains a namespace; Leases are listed and deleted.
func others(r request) bool {
	return (r.verb != "PUT" || r.resource != "leases") &&
		!strings.HasPrefix(r.subresource, "openapi")
}

// Requests counts what the API server is asked about a kind in a time, by verb.
func Requests(ctx context.Context, metrics func(context.Context) (string, error), kind Kind, within time.Duration) (Counts, error) {
	before, err := countRequests(ctx, metrics, about(kind))
	if err != nil {
		return nil, err
	}
	if err := Pause(ctx, within); err != nil {
		return nil, err
	}
	after, err := countRequests(ctx, metrics, about(kind))
	return after.minus(before), err
}

// RequestsOf counts what the API server is asked, about any kind, while something is done.
func RequestsOf(ctx context.Context, metrics func(context.Context) (string, error), do func() error) (Counts, error) {
	before, err := countRequests(ctx, metrics, others)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, err := countRequests(ctx, metrics, others)
	return after.minus(before), err
}

// countRequests reads from the API server itself what it was asked since it
// started, as far as it is wanted, by verb.
func countRequests(ctx context.Context, metrics func(context.Context) (string, error), wanted func(request) bool) (Counts, error) {
	const name = "apiserver_request_total"
	text, err := metrics(ctx)
	if err != nil {
		return nil, err
	}
	families, err := parseMetrics(family(text, name))
	if err != nil {
		return nil, err
	}
	sums := Counts{}
	for _, m := range families[name].GetMetric() {
		l := labels(m)
		if r := (request{l["verb"], l["group"], l["resource"], l["subresource"], l["code"]}); wanted(r) {
			sums[r.verb] += m.GetCounter().GetValue()
		}
	}
	return sums, nil
}

// family leaves of metrics the lines of one family, which is a small part: to parse all takes long,
// and is done while others are measured.
func family(text, name string) string {
	var of strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) || strings.HasPrefix(line, "# TYPE "+name+" ") {
			of.WriteString(line)
		}
	}
	return of.String()
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

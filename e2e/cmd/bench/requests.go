package main

import (
	"context"
	"strings"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/weir"
)

// counts are requests by verb.
type counts map[string]float64

// total leaves out watches: they are counted when they end, and follow nothing that a system does to
// an object.
func (c counts) total() float64 {
	total := 0.0
	for verb, n := range c {
		if verb != "WATCH" {
			total += n
		}
	}
	return total
}

// measured is a result with the requests that there were, without the driver's own.
type measured struct {
	load.Result
	requests counts
}

// perObject is requests per dependent.
func (m measured) perObject() float64 { return m.requests.total() / float64(m.Dependents) }

// A request is what the API server's metrics tell of one.
type request map[string]string

// about is every request for a kind.
func about(kind load.Kind) func(request) bool {
	return func(r request) bool { return r["group"] == kind.Group && r["resource"] == kind.Resource }
}

// others is every request but those that the API server sends itself while nothing else runs: it
// renews its Lease and reads its own OpenAPI. No system sends these while it drains a namespace;
// Leases are listed and deleted.
func others(r request) bool {
	return (r["verb"] != "PUT" || r["resource"] != "leases") && !strings.HasPrefix(r["subresource"], "openapi")
}

// counted counts the requests while something is measured by one watch.
func (b *bench) counted(ctx context.Context, wanted func(request) bool, do func() (load.Result, error)) (m measured, err error) {
	before, err := b.requests(ctx, wanted)
	if err != nil {
		return m, err
	}
	if m.Result, err = do(); err != nil {
		return m, err
	}
	m.requests, err = b.requests(ctx, wanted)
	for verb := range m.requests {
		m.requests[verb] -= before[verb]
	}
	if !m.Began.IsZero() {
		m.requests["LIST"]-- // load.Follow's
	}
	return m, err
}

// requests reads from the API server itself what it was asked since it started, as far as it is
// wanted, by verb.
func (b *bench) requests(ctx context.Context, wanted func(request) bool) (counts, error) {
	const name = "apiserver_request_total"
	text, err := b.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	// To parse all of it takes long, and is done while others are measured.
	var family strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) || strings.HasPrefix(line, "# TYPE "+name+" ") {
			family.WriteString(line)
		}
	}
	families, err := weir.ParseMetrics(family.String())
	sums := counts{}
	for _, m := range families[name].GetMetric() {
		r := request{}
		for _, pair := range m.GetLabel() {
			r[pair.GetName()] = pair.GetValue()
		}
		if wanted(r) {
			sums[r["verb"]] += m.GetCounter().GetValue()
		}
	}
	return sums, err
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/e2e/load"
)

func (r *report) writeEnforced(s *strings.Builder) {
	if len(r.enforced) == 0 {
		return
	}
	head := []string{"deletions", "mode", "plainly, objects/s", "weir, objects/s", "weir / plainly, by round", "weir / by hand, by round", "requests each", "by verb", "first after",
		"alone, terminates for", "made, of plainly", "the API server's CPU each, µs: plainly", "by hand", "weir"}
	fmt.Fprintf(s, "\n| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, e := range enforcings {
		for _, mode := range modes {
			rounds := slices.DeleteFunc(slices.Clone(r.enforced[e.name]), func(x enforcedSample) bool { return x.mode != mode })
			if len(rounds) > 0 { // or it was interrupted before
				writeEnforcing(s, e, mode, rounds)
			}
		}
	}
}

// writeEnforcing tells the rounds of one mode.
func writeEnforcing(s *strings.Builder, e enforcing, mode string, rounds []enforcedSample) {
	of := func(value func(enforcedSample) float64) (v []float64) {
		for _, x := range rounds {
			v = append(v, value(x))
		}
		return v
	}
	byHand, serverByHand, alone := "", "", ""
	if e.layout(1).Loose {
		alone = fmt.Sprintf("%.1f ms", median(of(func(x enforcedSample) float64 { return x.alone.Seconds() * 1000 })))
	}
	if rounds[0].byHand.Dependents > 0 {
		byHand = byRound(of(func(x enforcedSample) float64 { return x.with.Rate() / x.byHand.Rate() }))
		serverByHand = fmt.Sprintf("%.0f", median(of(func(x enforcedSample) float64 { return x.byHand.server })))
	}
	fmt.Fprintf(s, "| %s | %s | %s | %.0f | %s | %s | %.2f | %s | %.0f ms | %s | %.2f | %.0f | %s | %.0f |\n", e.name, mode,
		spread(of(func(x enforcedSample) float64 { return x.plain.Rate() })), median(of(func(x enforcedSample) float64 { return x.with.Rate() })),
		byRound(of(func(x enforcedSample) float64 { return x.with.Rate() / x.plain.Rate() })), byHand,
		median(of(func(x enforcedSample) float64 { return x.with.PerObject() })), verbsEach(rounds),
		median(of(func(x enforcedSample) float64 { return x.with.First.Seconds() * 1000 })), alone,
		median(of(func(x enforcedSample) float64 { return x.with.made / x.plain.made })),
		median(of(func(x enforcedSample) float64 { return x.plain.server })), serverByHand,
		median(of(func(x enforcedSample) float64 { return x.with.server })))
}

// verbsEach are the requests for an object, by verb: the medians, each verb for itself, of those of
// which there is one for a hundred objects.
func verbsEach(rounds []enforcedSample) string {
	sent := load.Counts{}
	for _, x := range rounds {
		maps.Copy(sent, x.with.Requests)
	}
	var text []string
	for _, verb := range slices.Sorted(maps.Keys(sent)) {
		var each []float64
		for _, x := range rounds {
			each = append(each, x.with.Requests[verb]/float64(x.with.Dependents))
		}
		if n := median(each); n >= 0.01 && verb != "WATCH" {
			text = append(text, fmt.Sprintf("%.2f %s", n, verb))
		}
	}
	return strings.Join(text, ", ")
}

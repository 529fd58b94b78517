package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/e2e/load"
)

// writeEmptyNamespace tells time and requests: there is nothing to be fast with.
func (r *report) writeEmptyNamespace(s *strings.Builder) {
	samples := r.samples[emptyNamespace]
	if len(samples) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| %s | gone after, ms (least–most) | requests | by verb (DELETE of collections too) | measured |\n|---|---|---|---|---|\n", emptyNamespace)
	for _, sys := range r.bench.drainers {
		took := valuesOf(samples, sys.Name, func(x sample) float64 { return x.measured.Took.Seconds() * 1000 })
		if len(took) == 0 {
			continue
		}
		fmt.Fprintf(s, "| %s | %s | %.0f | %s | %d times |\n", sys.Name, spread(took),
			medianOf(samples, sys.Name, func(x sample) float64 { return x.measured.Requests.Total() }),
			verbs(samples, sys.Name), len(took))
	}
}

// verbs are the medians of a system's requests, each verb for itself.
func verbs(samples []sample, system string) string {
	sent := load.Counts{}
	for _, x := range samples {
		maps.Copy(sent, x.measured.Requests)
	}
	var text []string
	for _, verb := range slices.Sorted(maps.Keys(sent)) {
		n := medianOf(samples, system, func(x sample) float64 { return x.measured.Requests[verb] })
		if n != 0 && verb != "WATCH" {
			text = append(text, fmt.Sprintf("%.0f %s", n, verb))
		}
	}
	return strings.Join(text, ", ")
}

// writeNamespaces tells how fast namespaces with content go.
func (r *report) writeNamespaces(s *strings.Builder) {
	ds := slices.DeleteFunc(r.bench.drainings(), func(d draining) bool {
		return d.name == emptyNamespace || len(r.samples[d.name]) == 0
	})
	if len(ds) == 0 {
		return
	}
	head, rule := "| work | floor, objects/s (least–most) |", "|---|---|"
	for _, sys := range r.bench.drainers {
		head += fmt.Sprintf(" %s, s | objects/s | share | requests each |", sys.Name)
		rule += "---|---|---|---|"
	}
	if r.bench.weir != "" {
		head += " weir is faster |"
		rule += "---|"
	}
	if r.bench.defaultN > 0 {
		head += " reference at its defaults, s |"
		rule += "---|"
		if r.bench.weir != "" {
			head += " weir is faster |"
			rule += "---|"
		}
	}
	fmt.Fprintf(s, "\n%s\n%s\n", head, rule)
	for _, d := range ds {
		r.writeNamespace(s, d.name)
	}
}

func (r *report) writeNamespace(s *strings.Builder, name string) {
	samples := r.samples[name]
	fmt.Fprintf(s, "| %s | %s |", name, spread(floorsOf(samples)))
	took := map[string]float64{}
	for _, sys := range r.bench.drainers {
		took[sys.Name] = medianOf(samples, sys.Name, func(x sample) float64 { return x.measured.Took.Seconds() })
		fmt.Fprintf(s, " %.2f | %.0f | %.2f | %.2f |", took[sys.Name],
			medianOf(samples, sys.Name, func(x sample) float64 { return x.measured.Rate() }),
			medianOf(samples, sys.Name, sample.share),
			medianOf(samples, sys.Name, func(x sample) float64 { return x.measured.PerObject() }))
	}
	if r.bench.weir != "" {
		fmt.Fprintf(s, " %s |", times(took["reference"], took["weir"]))
	}
	if r.bench.defaultN > 0 {
		l, ok := r.limited[name]
		text := ""
		if ok {
			text = fmt.Sprintf(" %.2f", l.Took.Seconds())
		}
		fmt.Fprintf(s, "%s |", text)
		if r.bench.weir != "" {
			fmt.Fprintf(s, " %s |", times(l.Took.Seconds(), took["weir"]))
		}
	}
	s.WriteString("\n")
}

// times is empty where one of both was not measured.
func times(slow, fast float64) string {
	if slow == 0 || fast == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f×", slow/fast)
}

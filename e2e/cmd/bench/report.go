package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

// A report collects samples in the order in which they were taken.
type report struct {
	bench   *bench
	command string
	date    time.Time

	samples    map[string][]sample // by work
	admitted   map[string][]admitted
	enforced   map[string][]enforcedSample
	braked     []brakedSample
	backFilled *backFilled
	limited    map[string]load.Result
	empty      map[string]weight // by system
	full       map[string]weight
	left       map[string]left
	following  map[string][]following
	shadowed   map[string][]shadowed // by mode
	beside     map[string][]beside   // by row
	starts     map[string]start
	objects    int
	asked      []asked
	askedCosts []askedCost
}

// A sample is a system's result and the floors around it.
type sample struct {
	system                  string
	before, measured, after load.Result
}

func (s sample) floor() float64 { return (s.before.Rate() + s.after.Rate()) / 2 }
func (s sample) share() float64 { return s.measured.Rate() / s.floor() }

func newReport(b *bench) *report {
	return &report{
		bench: b, date: time.Now().UTC(),
		samples: map[string][]sample{}, admitted: map[string][]admitted{}, enforced: map[string][]enforcedSample{}, limited: map[string]load.Result{},
		empty: map[string]weight{}, full: map[string]weight{}, left: map[string]left{}, following: map[string][]following{}, shadowed: map[string][]shadowed{}, beside: map[string][]beside{}, starts: map[string]start{},
	}
}

// text is what was measured; empty if nothing was.
func (r *report) text() string {
	var tables strings.Builder
	r.writeTables(&tables)
	if tables.Len() == 0 {
		return ""
	}
	return r.head() + tables.String()
}

// head says on what it was measured, and how.
func (r *report) head() string {
	var s strings.Builder
	fmt.Fprintf(&s, "Measured %s with `%s`.\n", r.date.Format("2006-01-02"), r.command)
	fmt.Fprintf(&s, "%s; everything on one machine. %d dependents, medians of %d rounds", load.Machine(), r.bench.n, r.bench.rounds)
	if r.bench.quick {
		s.WriteString("; quick: one round only of trees, custom resources and namespaces")
	} else if r.bench.weir != "" && r.bench.before == "" {
		s.WriteString("; of trees, custom resources and namespaces one round by the reference")
	}
	s.WriteString(".\n")
	if len(r.bench.short) > 0 {
		fmt.Fprintf(&s, "Within %s there was no time for all rounds, but for these: %s.\n", r.bench.limit, strings.Join(r.bench.short, "; "))
	}
	if r.bench.before != "" {
		s.WriteString("Beside Weir an older one collects, not the reference.\n")
	}
	fmt.Fprintf(&s, "The reference is kube-controller-manager with one controller, with its request limits lifted and --concurrent-gc-syncs=%d, and --concurrent-namespace-syncs=%d.\nWeir does both controllers' work in every measurement, unless a flag says otherwise.\n", r.bench.gcSyncs, namespaceSyncs)
	fmt.Fprintf(&s, "The floor is the same work by plain requests from %d clients. A share is a system's rate divided by the mean of the floors right before and after it;\nwhere floors differ much, something else ran on the machine.\n\n", load.Clients)
	return s.String()
}

func (r *report) writeTables(s *strings.Builder) {
	r.writeRates(s)
	r.writeEmptyNamespace(s)
	r.writeNamespaces(s)
	r.writeBeside(s)
	r.writeAdmitted(s)
	r.writeEnforced(s)
	r.writeBraked(s)
	r.writeBackFill(s)
	r.writeMemory(s)
	r.writeLeft(s)
	r.writeFollowing(s)
	r.writeShadowed(s)
	r.writeCoOwners(s)
	r.writeAsking(s)
	r.writeAskedCosts(s)
}

func (r *report) writeRates(s *strings.Builder) {
	if !slices.ContainsFunc(works, func(w work) bool { return len(r.samples[w.name]) > 0 }) {
		return
	}
	head, rule := "| work | floor, objects/s (least–most) |", "|---|---|"
	for _, sys := range r.bench.systems {
		head += fmt.Sprintf(" %s, objects/s | share | requests each | first after |", sys.Name)
		rule += "---|---|---|---|"
	}
	if r.bench.defaultN > 0 {
		head += fmt.Sprintf(" reference at its defaults, objects/s (of %d) |", r.bench.defaultN)
		rule += "---|"
	}
	fmt.Fprintf(s, "%s\n%s\n", head, rule)
	for _, w := range works {
		if len(r.samples[w.name]) > 0 {
			r.writeWork(s, w.name)
		}
	}
}

func (r *report) writeWork(s *strings.Builder, name string) {
	samples := r.samples[name]
	floors := floorsOf(samples)
	fmt.Fprintf(s, "| %s | %s |", name, spread(floors))
	for _, sys := range r.bench.systems {
		fmt.Fprintf(s, " %.0f | %.2f | %.2f | %.0f ms |",
			medianOf(samples, sys.Name, func(x sample) float64 { return x.measured.Rate() }),
			medianOf(samples, sys.Name, sample.share),
			medianOf(samples, sys.Name, func(x sample) float64 { return x.measured.PerObject() }),
			medianOf(samples, sys.Name, func(x sample) float64 { return x.measured.First.Seconds() * 1000 }))
	}
	if l, ok := r.limited[name]; ok {
		fmt.Fprintf(s, " %.0f |", l.Rate())
	} else if r.bench.defaultN > 0 {
		s.WriteString(" |")
	}
	s.WriteString("\n")
}

func (r *report) writeMemory(s *strings.Builder) {
	if len(r.full) == 0 {
		return
	}
	fmt.Fprintf(s, "\n| system | RSS, empty | RSS, %d objects | each | heap, empty | heap, %[1]d objects | each | first work, empty | first work, %[1]d objects |\n", r.objects)
	fmt.Fprint(s, "|---|---|---|---|---|---|---|---|---|\n")
	for _, sys := range r.bench.systems {
		e, f := r.empty[sys.Name], r.full[sys.Name]
		fmt.Fprintf(s, "| %s | %.1f MB | %.1f MB | %s | %.1f MB | %.1f MB | %s | %.2f s | %.2f s |\n", sys.Name,
			mb(e.RSS), mb(f.RSS), each(e.RSS, f.RSS, r.objects),
			mb(e.Heap), mb(f.Heap), each(e.Heap, f.Heap, r.objects),
			e.awake.Seconds(), f.awake.Seconds())
	}
}

// floorsOf counts each once: the floor after one sample is the one before the
// next.
func floorsOf(samples []sample) []float64 {
	floors := []float64{samples[0].before.Rate()}
	for _, x := range samples {
		floors = append(floors, x.after.Rate())
	}
	return floors
}

// spread is the median of values, the least and the most.
func spread(v []float64) string {
	return fmt.Sprintf("%.0f (%.0f–%.0f)", median(v), slices.Min(v), slices.Max(v))
}

func each(empty, full uint64, n int) string {
	return fmt.Sprintf("%.0f B", (float64(full)-float64(empty))/float64(n))
}

func medianOf(samples []sample, system string, value func(sample) float64) float64 {
	return median(valuesOf(samples, system, value))
}

func valuesOf(samples []sample, system string, value func(sample) float64) []float64 {
	var v []float64
	for _, x := range samples {
		if x.system == system {
			v = append(v, value(x))
		}
	}
	return v
}

// median of nothing is 0.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

// A report collects figures in the order in which they were taken.
type report struct {
	bench   *bench
	command string
	date    time.Time

	lines    []*line
	admitted map[string][]admitted
	enforced map[string][]enforcedSample
}

// A line is what was measured of somebody in a row: each figure by round.
type line struct {
	row, who string
	names    []string
	values   [][]float64
}

// A figure is one that was measured.
type figure struct {
	name  string
	value float64
}

func newReport(b *bench) *report {
	return &report{bench: b, date: time.Now().UTC(), admitted: map[string][]admitted{},
		enforced: map[string][]enforcedSample{}}
}

// note keeps figures of somebody in the row that is measured, and says them. They are the same in
// each round.
func (r *report) note(who string, figures ...figure) {
	i := slices.IndexFunc(r.lines, func(l *line) bool { return l.row == r.bench.row && l.who == who })
	if i < 0 {
		i = len(r.lines)
		r.lines = append(r.lines, &line{row: r.bench.row, who: who, values: make([][]float64, len(figures))})
		for _, f := range figures {
			r.lines[i].names = append(r.lines[i].names, f.name)
		}
	}
	var said []string
	for k, f := range figures {
		r.lines[i].values[k] = append(r.lines[i].values[k], f.value)
		said = append(said, f.name+" "+number(f.value))
	}
	r.bench.say("%s, %s: %s", r.bench.row, who, strings.Join(said, ", "))
}

// text is what was measured; empty if nothing was.
func (r *report) text() string {
	var tables strings.Builder
	r.writeLines(&tables)
	r.writeAdmitted(&tables)
	r.writeEnforced(&tables)
	if tables.Len() == 0 {
		return ""
	}
	return r.head() + tables.String()
}

// head says on what it was measured, and how.
func (r *report) head() string {
	var s strings.Builder
	fmt.Fprintf(&s, "Measured %s with `%s`.\n", r.date.Format("2006-01-02"), r.command)
	fmt.Fprintf(&s, "%s; everything on one machine. %d dependents, medians of %d rounds (least–most)", load.Machine(),
		r.bench.n, r.bench.rounds)
	if r.bench.weir != "" && r.bench.before == "" {
		s.WriteString("; of trees, custom resources and namespaces one round by the reference")
	}
	s.WriteString(".\n")
	if len(r.bench.short) > 0 {
		fmt.Fprintf(&s, "Within %s there was no time for all rounds, but for these: %s.\n", r.bench.limit, strings.Join(r.bench.short, "; "))
	}
	if r.bench.before != "" {
		s.WriteString("Beside Weir an older one collects, not the reference.\n")
	}
	fmt.Fprintf(&s,
		"The reference is kube-controller-manager with its two collectors, request limits lifted, "+
			"and %d workers each.\nWeir does both controllers' work in every measurement, unless a flag says otherwise.\n", syncs)
	fmt.Fprintf(&s,
		"The floor is the same work by plain requests from %d clients. "+
			"A share is a system's rate divided by the mean of the floors right before and after it;\nwhere floors differ much, something else ran on the machine.\n", load.Clients)
	return s.String()
}

// writeLines has lines of the same figures in one table.
func (r *report) writeLines(s *strings.Builder) {
	var head []string
	for _, l := range r.lines {
		if !slices.Equal(head, l.names) {
			head = l.names
			fmt.Fprintf(s, "\n| work | by | %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", 2+len(head)))
		}
		fmt.Fprintf(s, "| %s | %s |", l.row, l.who)
		for _, v := range l.values {
			s.WriteString(" " + spread(v) + " |")
		}
		s.WriteString("\n")
	}
}

// spread is the median of values, and of several the least and the most.
func spread(v []float64) string {
	if len(v) == 1 {
		return number(v[0])
	}
	return fmt.Sprintf("%s (%s–%s)", number(median(v)), number(slices.Min(v)), number(slices.Max(v)))
}

// number has three digits at least.
func number(f float64) string {
	if f >= 100 || f <= -100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}

// median of nothing is 0.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

// A report collects figures in the order in which they were taken.
type report struct {
	lines []*line
	short []string // rows with fewer rounds than were asked for
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

// note keeps figures of somebody in the row that is measured, and says them. They are the same in
// each round.
func (b *bench) note(who string, figures ...figure) {
	i := slices.IndexFunc(b.lines, func(l *line) bool { return l.row == b.row && l.who == who })
	if i < 0 {
		i = len(b.lines)
		b.lines = append(b.lines, &line{row: b.row, who: who, values: make([][]float64, len(figures))})
		for _, f := range figures {
			b.lines[i].names = append(b.lines[i].names, f.name)
		}
	}
	var said []string
	for k, f := range figures {
		b.lines[i].values[k] = append(b.lines[i].values[k], f.value)
		said = append(said, f.name+" "+number(f.value))
	}
	b.say("%s, %s: %s", b.row, who, strings.Join(said, ", "))
}

// text is what was measured, with lines of the same figures in one table; empty if nothing was.
func (b *bench) text(command string) string {
	if len(b.lines) == 0 {
		return ""
	}
	var s strings.Builder
	b.head(&s, command)
	var head []string
	for _, l := range b.lines {
		if !slices.Equal(head, l.names) {
			head = l.names
			fmt.Fprintf(&s, "\n| work | by | %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", 2+len(head)))
		}
		fmt.Fprintf(&s, "| %s | %s |", l.row, l.who)
		for _, v := range l.values {
			s.WriteString(" " + spread(v) + " |")
		}
		s.WriteString("\n")
	}
	return s.String()
}

// head says on what it was measured, and how.
func (b *bench) head(s *strings.Builder, command string) {
	fmt.Fprintf(s, "Measured %s with `%s`.\n", time.Now().UTC().Format("2006-01-02"), command)
	fmt.Fprintf(s, "%s; everything on one machine. %d dependents, medians of %d rounds (least–most)", machine(), b.n, b.rounds)
	beside := "; of trees, custom resources and namespaces one round by the reference.\n"
	if b.before != "" {
		beside = ".\nBeside Weir an older one collects, not the reference.\n"
	}
	s.WriteString(beside)
	if len(b.short) > 0 {
		fmt.Fprintf(s, "Within %s there was no time for all rounds, but for these: %s.\n", b.limit, strings.Join(b.short, "; "))
	}
	fmt.Fprintf(s, "The reference is kube-controller-manager with its two collectors, request limits lifted, and %d workers each.\n"+
		"Weir does both controllers' work in every measurement, unless a flag says otherwise.\n", syncs)
	fmt.Fprintf(s, "The floor is the same work by plain requests from %d clients. "+
		"A share is a system's rate divided by the mean of the floors right before and after it;\n"+
		"where floors differ much, something else ran on the machine.\n", load.Clients)
}

// machine says what rates depend on, and nothing that names the machine, as what comes after the
// kernel's version often does.
func machine() string {
	version, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kernel, _, _ := strings.Cut(strings.TrimSpace(string(version)), "-")
	info, _ := os.ReadFile("/proc/meminfo")
	var kb float64
	_, _ = fmt.Sscanf(string(info), "MemTotal: %f kB", &kb) // or it is 0 GiB
	return fmt.Sprintf("%d cores, %.0f GiB, kernel %s, %s", runtime.NumCPU(), kb/(1<<20), kernel, runtime.Version())
}

// spread is the median of values, and of several the least and the most.
func spread(v []float64) string {
	if len(v) == 1 {
		return number(v[0])
	}
	return fmt.Sprintf("%s (%s–%s)", number(percentile(v, 50)), number(slices.Min(v)), number(slices.Max(v)))
}

// number has three digits at least.
func number(f float64) string {
	if f >= 100 || f <= -100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}

// percentile is by nearest rank (p is above 0 and at most 100); 0 of nothing.
func percentile(v []float64, p int) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(v))[(len(v)*p+99)/100-1]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
func mb(bytes uint64) float64              { return float64(bytes) / 1e6 }

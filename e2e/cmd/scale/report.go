package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/scale"
)

// A report is what was measured; what is nil was not.
type report struct {
	objects      int
	limit, lease time.Duration
	date         time.Time
	cut          string   // what was under way when the time was up
	failed       []string // what failed

	empty                   *load.Footprint
	steady                  *steady
	plane                   map[string]uint64 // memory of the plane's processes, with all objects
	populated               *timed
	started                 *started
	updated                 *updated
	cascade, drained, floor *gone
	failedOver              *failedOver
	asked                   *asked
}

// steady is what weir holds while objects are updated.
type steady struct {
	least load.Footprint
	most  uint64
}

// timed is so many objects in a time.
type timed struct {
	objects int
	took    time.Duration
}

// started is rounds of plain lists and a start each.
type started struct {
	objects int
	rounds  []startRound
}

type startRound struct {
	lists, ready, awake time.Duration
	peak                uint64
}

// median is that of one figure of all rounds.
func (s started) median(of func(startRound) time.Duration) time.Duration {
	var all []time.Duration
	for _, r := range s.rounds {
		all = append(all, of(r))
	}
	return load.Percentile(all, 50)
}

// sum is that of one figure of all rounds.
func (s started) sum(of func(startRound) time.Duration) (sum time.Duration) {
	for _, r := range s.rounds {
		sum += of(r)
	}
	return sum
}

// peak is what the process that leads held at the most.
func (s started) peak() uint64 { return s.rounds[len(s.rounds)-1].peak }

type updated struct {
	n, perSecond int
	took         time.Duration
	each         float64 // µs of CPU
}

func (u updated) rate() float64 { return scale.Rate(int64(u.n), u.took) }

// gone is what was deleted while so many objects were there.
type gone struct {
	load.Result
	live int
}

type failedOver struct {
	ready          time.Duration // of the standby
	objects, after int           // it was killed after so many of them
	killed         time.Time
	pause          time.Duration
}

// slack is what a fail-over may take beyond the Lease.
const slack = time.Second

type asked struct {
	live          int
	without, with []time.Duration
	calls         float64 // of the webhook, for each of the latter
}

func (r *report) text() string {
	var s strings.Builder
	r.writeHead(&s)
	r.writeMemory(&s)
	r.writeStart(&s)
	r.writeUpdates(&s)
	r.writeGone(&s)
	r.writeFailOver(&s)
	r.writeAsked(&s)
	return s.String()
}

func (r *report) writeHead(s *strings.Builder) {
	fmt.Fprintf(s, "Measured %s with `make bench-scale OBJECTS=%d`, within %s. %s; everything on one machine.\n", r.date.Format("2006-01-02"), r.objects, r.limit, load.Machine())
	fmt.Fprintf(s, "Objects of %d kinds, in %d namespaces, each with a tree of two levels.\n", len(scale.Templates()), namespaces)
	if p := r.populated; p != nil && p.objects < r.objects {
		fmt.Fprintf(s, "**The API server was too slow for %d objects: there were %d when it was time to go on.**\n", r.objects, p.objects)
	}
	if p := r.populated; p != nil {
		fmt.Fprintf(s, "%d objects were made, %.0f a second; then the API server held %.1f GB, and etcd %.1f GB.\n", p.objects, scale.Rate(int64(p.objects), p.took),
			float64(r.plane[string(plane.APIServer)])/1e9, float64(r.plane[string(plane.Etcd)])/1e9)
	}
	if len(r.failed) > 0 {
		fmt.Fprintf(s, "**Failed, and not measured: %s.**\n", strings.Join(r.failed, ", "))
	}
	if r.cut != "" {
		fmt.Fprintf(s, "**The time was up at %q: that, and what comes after it, was not measured.**\n", r.cut)
	}
}

func (r *report) writeMemory(s *strings.Builder) {
	if r.empty == nil || r.steady == nil || r.started == nil || len(r.started.rounds) == 0 {
		return
	}
	n := r.started.objects
	fmt.Fprintf(s, "\n| memory | empty | %d objects | each above empty | of steady |\n|---|---|---|---|---|\n", n)
	row := func(name string, empty, full uint64, of string) {
		fmt.Fprintf(s, "| %s | %.0f MB | %.0f MB | %.0f B | %s |\n", name, mb(empty), mb(full), scale.Each(empty, full, n), of)
	}
	least := r.steady.least
	share := func(x uint64) string { return fmt.Sprintf("%.2f", float64(x)/float64(least.RSS)) }
	row("RSS, steady: the least while objects are updated", r.empty.RSS, least.RSS, "")
	row("RSS, the most while objects are updated", r.empty.RSS, r.steady.most, share(r.steady.most))
	row("RSS, at the most while starting", r.empty.RSS, r.started.peak(), share(r.started.peak()))
	row("Go heap, the least", r.empty.Heap, least.Heap, "")
}

func (r *report) writeStart(s *strings.Builder) {
	x := r.started
	if x == nil || len(x.rounds) == 0 {
		return
	}
	lists, ready := func(r startRound) time.Duration { return r.lists }, func(r startRound) time.Duration { return r.ready }
	awake := func(r startRound) time.Duration { return r.awake }
	fmt.Fprintf(s, "\n| start with %d objects | rounds | ready | plain lists of all kinds, side by side, before each | ready / lists, of the sums | first work |\n|---|---|---|---|---|---|\n", x.objects)
	fmt.Fprintf(s, "| weir | %d | %.1f s | %.1f s | %.2f | %.1f s |\n", len(x.rounds), x.median(ready).Seconds(), x.median(lists).Seconds(),
		x.sum(ready).Seconds()/x.sum(lists).Seconds(), x.median(awake).Seconds())
}

func (r *report) writeUpdates(s *strings.Builder) {
	if u := r.updated; u != nil {
		fmt.Fprintf(s, "\n| updates | asked for, a second | reached | CPU each, µs |\n|---|---|---|---|\n| %d | %d | %.0f | %.1f |\n", u.n, u.perSecond, u.rate(), u.each)
	}
}

func (r *report) writeGone(s *strings.Builder) {
	head := "\n| work | objects | live before | objects/s | of the floor | first after | requests each |\n|---|---|---|---|---|---|---|\n"
	for _, x := range []struct {
		name string
		gone *gone
	}{{"plain requests (floor)", r.floor}, {"cascade, background", r.cascade}, {"namespace", r.drained}} {
		if x.gone == nil {
			continue
		}
		share, first, requests := "", "", ""
		if r.floor != nil && x.gone != r.floor {
			share = fmt.Sprintf("%.2f", x.gone.Rate()/r.floor.Rate())
		}
		if x.gone == r.cascade {
			first = fmt.Sprintf("%d ms", x.gone.First.Milliseconds())
		}
		if x.gone.Requests != nil {
			requests = fmt.Sprintf("%.2f", x.gone.PerObject())
		}
		fmt.Fprintf(s, "%s| %s | %d | %d | %.0f | %s | %s | %s |\n", head, x.name, x.gone.Dependents, x.gone.live, x.gone.Rate(), share, first, requests)
		head = ""
	}
}

func (r *report) writeFailOver(s *strings.Builder) {
	x := r.failedOver
	if x == nil {
		return
	}
	fmt.Fprintf(s, "\n| fail-over, in a cascade of %d | standby ready after | the leader was killed after | time without a delete | Lease | goal |\n|---|---|---|---|---|---|\n", x.objects)
	met := "met"
	if x.pause > r.lease+slack {
		met = "missed"
	}
	fmt.Fprintf(s, "| weir | %.1f s | %d | %.1f s | %s | %s: %s |\n", x.ready.Seconds(), x.after, x.pause.Seconds(), r.lease, r.lease+slack, met)
}

func (r *report) writeAsked(s *strings.Builder) {
	x := r.asked
	if x == nil {
		return
	}
	fmt.Fprintf(s, "\n| DELETE for a trial, one at a time, %d objects live | requests | p50 | p99 | reviews each |\n|---|---|---|---|---|\n", x.live)
	row := func(name string, took []time.Duration, calls float64) {
		fmt.Fprintf(s, "| %s | %d | %.2f ms | %.2f ms | %.2f |\n", name, len(took), milliseconds(load.Percentile(took, 50)), milliseconds(load.Percentile(took, 99)), calls)
	}
	row("without a webhook", x.without, 0)
	row("weir's, dependents are counted", x.with, x.calls)
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

//go:build full

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/scale"
)

// tables is a report without what is of this machine.
func tables(r *report) string {
	_, after, _ := strings.Cut(r.text(), "everything on one machine.\n")
	return after
}

func TestReportTellsWhatWasMeasured(t *testing.T) {
	milliseconds := func(ms ...int) (v []time.Duration) {
		for _, x := range ms {
			v = append(v, time.Duration(x)*time.Millisecond)
		}
		return v
	}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	of := func(n int, took time.Duration, live int) *gone {
		return &gone{load.Result{Dependents: n, Took: took, First: 30 * time.Millisecond}, live}
	}
	r := &report{
		objects: 1000, limit: 40 * time.Minute, lease: 15 * time.Second, date: began,
		empty: &load.Footprint{RSS: 60e6, Heap: 10e6}, steady: &steady{load.Footprint{RSS: 310e6, Heap: 210e6}, 400e6},
		plane:     map[string]uint64{string(plane.APIServer): 5e9, string(plane.Etcd): 1.5e9},
		populated: &timed{1000, 500 * time.Millisecond},
		started: &started{1000, []startRound{{8 * time.Second, 12 * time.Second, 13 * time.Second, 600e6}, {10 * time.Second, 14 * time.Second, 20 * time.Second, 650e6},
			{12 * time.Second, 10 * time.Second, 11 * time.Second, 560e6}}},
		updated: &updated{n: 120, perSecond: 2000, took: 80 * time.Millisecond, each: 12.34},
		cascade: of(100, 50*time.Millisecond, 1000), drained: of(100, 200*time.Millisecond, 900), floor: of(100, 40*time.Millisecond, 800),
		failedOver: &failedOver{ready: 14 * time.Second, objects: 100, after: 50, killed: began, pause: 16001 * time.Millisecond},
		asked:      &asked{live: 1000, without: milliseconds(1, 2, 3), with: milliseconds(5, 4, 40), calls: 1},
	}
	r.drained.Requests = load.Counts{"DELETE": 101, "WATCH": 7, "LIST": 9}
	want := `Objects of 20 kinds, in 50 namespaces, each with a tree of two levels.
1000 objects were made, 2000 a second; then the API server held 5.0 GB, and etcd 1.5 GB.

| memory | empty | 1000 objects | each above empty | of steady |
|---|---|---|---|---|
| RSS, steady: the least while objects are updated | 60 MB | 310 MB | 250000 B |  |
| RSS, the most while objects are updated | 60 MB | 400 MB | 340000 B | 1.29 |
| RSS, at the most while starting | 60 MB | 560 MB | 500000 B | 1.81 |
| Go heap, the least | 10 MB | 210 MB | 200000 B |  |

| start with 1000 objects | rounds | ready | plain lists of all kinds, side by side, before each | ready / lists, of the sums | first work |
|---|---|---|---|---|---|
| weir | 3 | 12.0 s | 10.0 s | 1.20 | 13.0 s |

| updates | asked for, a second | reached | CPU each, µs |
|---|---|---|---|
| 120 | 2000 | 1500 | 12.3 |

| work | objects | live before | objects/s | of the floor | first after | requests each |
|---|---|---|---|---|---|---|
| plain requests (floor) | 100 | 800 | 2500 |  |  |  |
| cascade, background | 100 | 1000 | 2000 | 0.80 | 30 ms |  |
| namespace | 100 | 900 | 500 | 0.20 |  | 1.10 |

| fail-over, in a cascade of 100 | standby ready after | the leader was killed after | time without a delete | Lease | goal |
|---|---|---|---|---|---|
| weir | 14.0 s | 50 | 16.0 s | 15s | 16s: missed |

| DELETE for a trial, one at a time, 1000 objects live | requests | p50 | p99 | reviews each |
|---|---|---|---|---|
| without a webhook | 3 | 2.00 ms | 3.00 ms | 0.00 |
| weir's, dependents are counted | 3 | 5.00 ms | 40.00 ms | 1.00 |
`
	if diff := cmp.Diff(want, tables(r)); diff != "" {
		t.Error(diff)
	}
}

func TestReportSaysWhatItDidNotReach(t *testing.T) {
	r := &report{objects: 1000, failed: []string{"webhook"}, cut: "cascade", populated: &timed{800, time.Second}, updated: &updated{n: 10, perSecond: 10, took: time.Second, each: 1}}
	want := `Objects of 20 kinds, in 50 namespaces, each with a tree of two levels.
**The API server was too slow for 1000 objects: there were 800 when it was time to go on.**
800 objects were made, 800 a second; then the API server held 0.0 GB, and etcd 0.0 GB.
**Failed, and not measured: webhook.**
**The time was up at "cascade": that, and what comes after it, was not measured.**

| updates | asked for, a second | reached | CPU each, µs |
|---|---|---|---|
| 10 | 10 | 10 | 1.0 |
`
	if diff := cmp.Diff(want, tables(r)); diff != "" {
		t.Error(diff)
	}
}

func TestTooFewObjectsAreRefused(t *testing.T) {
	if _, err := parse([]string{"--objects=10", "--weir=report_test.go"}); err == nil || !strings.Contains(err.Error(), "at least 5000") {
		t.Errorf("error %v", err)
	}
	if _, err := parse([]string{"--weir=nowhere"}); err == nil {
		t.Error("a weir that is not there is taken")
	}
	if o, err := parse([]string{"--weir=report_test.go", "--objects=5000"}); err != nil || o.objects != 5000 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestSteadyIsTheLeastAndTheMost(t *testing.T) {
	of := func(rss, heap uint64) scale.Sample {
		return scale.Sample{Memory: map[string]uint64{"weir": rss}, Heap: heap}
	}
	if got := steadyOf([]scale.Sample{{}, of(0, 5), of(9, 0)}); got != nil {
		t.Errorf("of nothing that was read it is %+v", got)
	}
	got := steadyOf([]scale.Sample{of(20, 7), {}, of(10, 9), of(30, 8)})
	if want := (steady{load.Footprint{RSS: 10, Heap: 7}, 30}); got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

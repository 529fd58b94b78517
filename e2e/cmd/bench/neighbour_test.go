//go:build full

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/e2e/load"
)

func TestReportTellsWhatAnotherClientWaitsBesideEach(t *testing.T) {
	r := newReport(&bench{options: options{n: 1000}})
	r.beside[neighbourName] = []beside{
		{besideNothing, 0, waits{1, 2}, waits{2, 4}},
		{"weir", 3000, waits{3, 20}, waits{4, 24}},
		{"reference", 1000, waits{5, 40}, waits{6, 32}},
		{besideNothing, 0, waits{1, 2}, waits{2, 4}},
		{"weir", 2000, waits{3, 10}, waits{4, 8}},
		{"reference", 1000, waits{5, 20}, waits{6, 32}},
	}
	var out strings.Builder
	r.writeBeside(&out)
	want := `
| another client beside cascades; 1000 objects | objects/s | its GETs, p50 | p99 | of idle | its PATCHes, p50 | p99 | of idle |
|---|---|---|---|---|---|---|---|
| nothing | 0 | 1.0 ms | 2.0 ms | 1.0 | 2.0 ms | 4.0 ms | 1.0 |
| weir | 2500 | 3.0 ms | 15.0 ms | 7.5 | 4.0 ms | 16.0 ms | 4.0 |
| reference | 1000 | 5.0 ms | 30.0 ms | 15.0 | 6.0 ms | 32.0 ms | 8.0 |

Beside weir, of beside reference, by round: rate 2.50 (3.00, 2.00), p99 of GETs 0.50 (0.50, 0.50), p99 of PATCHes 0.50 (0.75, 0.25).
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOnlyWhatWasAskedForBesideTheWorkCounts(t *testing.T) {
	from := time.Now()
	at := func(after, took time.Duration) load.Latency { return load.Latency{At: from.Add(after), Took: took} }
	all := load.Answers{
		Get:   []load.Latency{at(-1, time.Hour), at(0, 2*time.Millisecond), at(9, 4*time.Millisecond), at(10, time.Hour)},
		Patch: []load.Latency{at(5, time.Millisecond)},
	}
	want := beside{"it", 7, waits{2, 4}, waits{1, 1}}
	if got := besideOf("it", 7, all, from, from.Add(10)); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

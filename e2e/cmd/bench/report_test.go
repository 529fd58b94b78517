//go:build full

package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/load"
)

func result(perSecond float64) load.Result {
	return load.Result{
		Dependents: 1000, Took: time.Duration(1000 / perSecond * float64(time.Second)), First: 5 * time.Millisecond,
		Requests: load.Counts{"DELETE": 1000, "GET": 500, "WATCH": 3},
	}
}

func TestReportTellsMediansAndShareOfTheFloorsAround(t *testing.T) {
	r := newReport(&bench{
		options: options{n: 1000, rounds: 3, defaultN: 40},
		systems: []load.System{{Name: "weir"}},
	})
	r.samples["background, flat"] = []sample{
		{"weir", result(2000), result(900), result(1000)},
		{"weir", result(1000), result(1000), result(1000)},
		{"weir", result(1000), result(100), result(3000)},
	}
	r.limited["background, flat"] = result(20)
	var out strings.Builder
	r.writeRates(&out)
	want := `| work | floor, objects/s (least–most) | weir, objects/s | share | requests each | first after | reference at its defaults, objects/s (of 40) |
|---|---|---|---|---|---|---|
| background, flat | 1500 (1000–3000) | 900 | 0.60 | 1.50 | 5 ms | 20 |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestCommandNamesNoPlaceOnTheMachine(t *testing.T) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.String("weir", "", "")
	flags.Int("n", 5000, "")
	flags.Int("rounds", 3, "")
	if err := flags.Parse([]string{"--weir=/some/where/weir", "--n=100"}); err != nil {
		t.Fatal(err)
	}
	if got, want := command(flags), "go run ./cmd/bench --n=100 --weir=weir"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
}

func TestReportTellsNamespacesByTimeAndRequests(t *testing.T) {
	b := &bench{
		options:  options{weir: "weir", defaultN: 200, namespaces: 20},
		drainers: []load.System{{Name: "weir"}, {Name: "reference"}},
	}
	gone := func(ms int, sent load.Counts) load.Result {
		return load.Result{Took: time.Duration(ms) * time.Millisecond, Requests: sent}
	}
	r := newReport(b)
	r.samples[emptyNamespace] = []sample{
		{system: "weir", measured: gone(90, load.Counts{"LIST": 30, "PUT": 1, "POST": 0, "WATCH": 1})},
		{system: "weir", measured: gone(80, load.Counts{"LIST": 31, "PUT": 1})},
		{system: "weir", measured: gone(300, load.Counts{"LIST": 31, "PUT": 1, "GET": 2})},
		{system: "reference", measured: gone(5000, load.Counts{"DELETE": 31, "LIST": 32})},
	}
	many := b.drainings()[1].name
	r.samples[many] = []sample{
		{"weir", result(1000), result(900), result(2000)},
		{"reference", result(2000), result(100), result(1000)},
	}
	r.limited[many] = result(50)
	var out strings.Builder
	r.writeRates(&out)
	r.writeEmptyNamespace(&out)
	r.writeNamespaces(&out)
	want := `
| empty namespace | gone after, ms (least–most) | requests | by verb (DELETE of collections too) | measured |
|---|---|---|---|---|
| weir | 90 (80–300) | 32 | 31 LIST, 1 PUT | 3 times |
| reference | 5000 (5000–5000) | 63 | 31 DELETE, 32 LIST | 1 times |

| work | floor, objects/s (least–most) | weir, s | objects/s | share | requests each | reference, s | objects/s | share | requests each | weir is faster | reference at its defaults, s | weir is faster |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
| 20 namespaces with 50 objects each | 1000 (1000–2000) | 1.11 | 900 | 0.60 | 1.50 | 10.00 | 100 | 0.07 | 1.50 | 9.0× | 20.00 | 18.0× |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestReportTellsWhatAWebhookCosts(t *testing.T) {
	r := newReport(&bench{})
	rates := func(before, empty, weir, after float64) admitted {
		return admitted{before: guarded{rate: before}, empty: guarded{empty, 1, 120}, weir: guarded{weir, 1, 150}, after: guarded{rate: after}}
	}
	r.admitted[admittings[0].name] = []admitted{rates(2000, 1000, 900, 1000), rates(1500, 800, 800, 1500), rates(1500, 1000, 700, 1500)}
	r.admitted[admittings[2].name] = []admitted{{before: guarded{rate: 2000}, weir: guarded{rate: 1900}, after: guarded{rate: 1800}}}
	made := rates(2000, 1000, 800, 2000)
	made.constant = guarded{rate: 1000}
	r.admitted[admittings[4].name] = []admitted{made}
	var out strings.Builder
	r.writeAdmitted(&out)
	want := `
| requests | without a webhook, objects/s (least–most) | empty webhook | its CPU each, µs | weir | CPU each, µs | weir / empty, by round | weir / the same patch always, by round | calls each |
|---|---|---|---|---|---|---|---|---|
| DELETE, a policy that changes no propagation | 1500 (1000–2000) | 1000 | 120 | 800 | 150 | 0.90 (0.90, 1.00, 0.70) |  | 1.00 |
| UPDATE of data, owner references are judged | 1900 (1800–2000) | not asked |  | 1900 | 0 | 1.00 (1.00) of without |  | 0.00 |
| CREATE, the finalizer is added | 2000 (2000–2000) | 1000 | 120 | 800 | 150 | 0.80 (0.80) | 0.80 (0.80) | 1.00 |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestQuickTakesOneRoundOfSlowWorks(t *testing.T) {
	for name, test := range map[string]struct {
		quick, slow bool
		want        int
	}{
		"full, slow":  {false, true, 3},
		"quick, fast": {true, false, 3},
		"quick, slow": {true, true, 1},
	} {
		b := &bench{options: options{rounds: 3, quick: test.quick}}
		if got := b.roundsOf(test.slow); got != test.want {
			t.Errorf("%s: %d rounds, want %d", name, got, test.want)
		}
	}
}

// There is no control plane: whatever else were measured would fail.
func TestOnlyMeasuresNothingElse(t *testing.T) {
	b := &bench{options: options{only: regexp.MustCompile("^back-fill"), memory: 100, plugin: "kubectl-weir", namespaceN: 100, namespaces: 100, n: 100, rounds: 3}}
	r := newReport(b)
	if err := b.run(t.Context(), r); err != nil {
		t.Error(err)
	}
	if got := r.text(); got != "" {
		t.Errorf("nothing was measured, and it says\n%s", got)
	}
}

func TestFileIsWrittenWhenThereIsAResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.md")
	if err := os.WriteFile(file, []byte("of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "a table\n"} {
		if err := tell(text, file); err != nil {
			t.Fatal(err)
		}
		want := text
		if text == "" {
			want = "of before"
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("after %q the file has %q, %v", text, got, err)
		}
	}
}

func TestReportTellsTheStartOfWeirApartFromBackFill(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	var asked []load.Latency
	for s := range 22 {
		took := time.Millisecond
		switch {
		case s < 2:
			took = 90 * time.Millisecond
		case s < 12:
			took = 7 * time.Millisecond
		}
		asked = append(asked, load.Latency{At: at(s), Took: took})
	}
	x := backFilled{objects: 1000, FinalizersAdded: load.FinalizersAdded{Began: began, First: at(2), Done: at(12), Since: 900}}
	x.floor, x.plainly = 120, 12*time.Millisecond
	x.idle, x.starting, x.during = time.Millisecond, highest(asked, x.Began, x.First), highest(asked, x.First, x.Done)
	r := newReport(&bench{})
	r.backFilled = &x
	var out strings.Builder
	r.writeBackFill(&out)
	if want := "| 12.0 s | 2.0 s | 90 | 120 | 0.75 | 1.0 ms | 12.0 ms | 90.0 ms | 7.0 ms |\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestReportTellsEnforcedDeletionsByModeAndVerb(t *testing.T) {
	r := newReport(&bench{options: options{n: 1000, rounds: 2, defaultN: 40}})
	sample := func(mode string, with, byHand float64) enforcedSample {
		x := enforcedSample{mode: mode, plain: turn{Result: result(2000), made: 2000, server: 700}, with: turn{Result: result(with), made: 1000, server: 2100}}
		if byHand > 0 {
			x.byHand = turn{Result: result(byHand), server: 1400}
		}
		return x
	}
	cascade := enforcings[3]
	if !cascade.collected {
		t.Fatalf("%s is not for the built-in collector", cascade.name)
	}
	if got := r.bench.modesOf(cascade, 0); len(got) != 3 || len(r.bench.modesOf(cascade, 1)) != 2 || len(r.bench.modesOf(enforcings[0], 0)) != 2 {
		t.Errorf("modes %v in the first round", got)
	}
	r.enforced[cascade.name] = []enforcedSample{sample("companion", 500, 800), sample(atDefaults, 20, 0), sample("companion", 700, 1000)}
	var out strings.Builder
	r.writeEnforced(&out)
	want := `
| deletions | mode | plainly, objects/s | weir, objects/s | weir / plainly, by round | weir / by hand, by round | requests each | by verb | first after | alone, terminates for | made, of plainly | the API server's CPU each, µs: plainly | by hand | weir |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| enforced Foreground, in a background cascade | companion | 2000 (2000–2000) | 600 | 0.30 (0.25, 0.35) | 0.66 (0.62, 0.70) | 1.50 | 1.00 DELETE, 0.50 GET | 5 ms |  | 0.50 | 700 | 1400 | 2100 |
| enforced Foreground, in a background cascade | companion, the collector at its defaults | 2000 (2000–2000) | 20 | 0.01 (0.01) |  | 1.50 | 1.00 DELETE, 0.50 GET | 5 ms |  | 0.50 | 700 |  | 2100 |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestReportTellsWhatQuestionsCost(t *testing.T) {
	r := newReport(&bench{})
	r.objects = 100
	r.askedCosts = []askedCost{{"pending", 400e6, 500e6, 600e6, map[string]float64{"pods": 1, "configmaps": 11, "secrets": 1}}}
	var out strings.Builder
	r.writeAskedCosts(&out)
	want := `
| what a question costs the API server, with 100 objects | holds before | at the most | asked 5 times more | requests, asked once |
|---|---|---|---|---|
| pending | 400 MB | 500 MB, 1.25× | 600 MB, 1.50× | 13 lists of 3 kinds, 11 of configmaps |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestEachRowIsOfOneTargetOfTheMakefile: a row of none is never measured, and a row of two is measured twice.
func TestEachRowIsOfOneTargetOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	only := regexp.MustCompile(`--out \$\(CURDIR\)/bin/bench\S*\.md --only='([^']+)'`).FindAllStringSubmatch(string(makefile), -1)
	if len(only) != 3 {
		t.Fatalf("%d targets that measure, want 3", len(only))
	}
	all := bench{options: options{weir: "weir", plugin: "kubectl-weir", memory: 1, coOwners: 1, namespaceN: 20000, namespaces: 100}}
	for _, row := range all.rows() {
		name := row.name
		targets := 0
		for _, m := range only {
			if regexp.MustCompile(m[1]).MatchString(name) {
				targets++
			}
		}
		if targets != 1 {
			t.Errorf("%q is measured by %d targets", name, targets)
		}
	}
}

// TestSystemsTakeTurns: an older Weir in each round, since it stands beside the new one and rounds differ, and who was last comes first in the next.
// The reference is slow, and is measured once where that matters.
func TestSystemsTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		second string
		slow   bool
		want   [3]string // by round
	}{
		{weirBefore, true, [3]string{"weir weir before", "weir before weir", "weir weir before"}},
		{"reference", true, [3]string{"weir reference", "weir", "weir"}},
		{"reference", false, [3]string{"weir reference", "reference weir", "weir reference"}},
	} {
		for round, want := range tt.want {
			var got []string
			for _, s := range inRound([]load.System{{Name: "weir"}, {Name: tt.second}}, round, tt.slow) {
				got = append(got, s.Name)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s, slow %t, round %d: %q, want %q", tt.second, tt.slow, round, got, want)
			}
		}
	}
}

package main

import (
	"flag"
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

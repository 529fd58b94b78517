//go:build full

package main

import (
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

// TestEachRowIsOfOneTargetOfTheMakefile: a row of none is never measured, and a row of two is
// measured twice.
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

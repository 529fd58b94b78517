//go:build full

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestReportTellsMediansOfTheFiguresOfAllRounds(t *testing.T) {
	r := newReport(&bench{})
	note := func(row, who string, rate, share float64) {
		r.bench.row = row
		r.note(who, figure{"objects/s", rate}, figure{"of the floor", share})
	}
	note("background, flat", "weir", 1000, 0.5)
	note("background, flat", "reference", 20, 0.25)
	note("background, flat", "weir", 3000.4, 0.625)
	note("background, tree", "weir", 900, 0.8)
	r.note("reference", figure{"took, s", 12})
	var out strings.Builder
	r.writeLines(&out)
	want := `
| work | by | objects/s | of the floor |
|---|---|---|---|
| background, flat | weir | 2000 (1000–3000) | 0.562 (0.5–0.625) |
| background, flat | reference | 20 | 0.25 |
| background, tree | weir | 900 | 0.8 |

| work | by | took, s |
|---|---|---|
| background, tree | reference | 12 |
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
	if len(only) != 5 {
		t.Fatalf("%d targets that measure, want 5", len(only))
	}
	all := bench{options: options{weir: "weir", plugin: "kubectl-weir", memory: 1, coOwners: 1, objects: 1,
		namespaceN: 20000, namespaces: 100}}
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

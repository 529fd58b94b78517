package graph_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-dev/weir/internal/testkit/script"
)

// TestScripts plays testdata/*.txt. The grammar is in the package comment of script; after each
// line the invariants of the graph are verified, so that no script has to ask.
//
// After a change, run with -rewrite, read the diff, and commit it only if you can explain it.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		r := script.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var below []string
			if d.Input != "" {
				below = strings.Split(d.Input, "\n")
			}
			answer, err := r.Run(d.FullCmd(), below...)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			if err := r.Graph.Check(); err != nil {
				return answer + "broken: " + strings.ReplaceAll(err.Error(), "\n", "\n  ") + "\n"
			}
			return answer
		})
	})
}

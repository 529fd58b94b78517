package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Stats counts what happened in a run.
type Stats map[string]int

// Add sums up runs.
func (s Stats) Add(other Stats) {
	for what, n := range other {
		s[what] += n
	}
}

func (s Stats) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s%d %s", map[bool]string{true: ", "}[b.Len() > 0], s[what], what)
	}
	return b.String()
}

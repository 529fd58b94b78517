package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPage(t *testing.T) {
	out, err := page([]byte(`# What the file is.

# The one
# and only.
one: a

# About the section, which no row says.
section:
  # Left | right.
  list:
  - {a: ["*"]}
  - b
  # A value as a whole.
  map: {k: 1, m: {n: x}}
  # Empty.
  empty: "" # and more
`))
	if err != nil {
		t.Fatal(err)
	}
	want := "| `one` | `a` | The one and only. |\n" +
		"| `section.list` | `[{a: [\"*\"]}, b]` | Left \\| right. |\n" +
		"| `section.map` | `{k: 1, m: {n: x}}` | A value as a whole. |\n" +
		"| `section.empty` | `\"\"` | Empty. |\n"
	if diff := cmp.Diff(intro+want, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsNotDocumentedIsAnError(t *testing.T) {
	for values, says := range map[string]string{
		"# Good.\na: 1\ns:\n  b: 2\n": "line 4: s.b has no comment",
		"# About more.\n\na: 1\n":     "line 3: a has no comment",
		"- a\n":                       "not a mapping",
		"":                            "not a mapping",
		"a: [":                        "yaml",
	} {
		if out, err := page([]byte(values)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s\n%s", values, err, says, out)
		}
	}
}

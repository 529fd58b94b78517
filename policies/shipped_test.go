package policies

import (
	"os"
	"path/filepath"
	"testing"
)

// shippedFiles are those of the policies that come with Weir.
func shippedFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// shippedSet is all shipped policies together.
func shippedSet(t testing.TB) *Set {
	t.Helper()
	var sources []Source
	for _, f := range shippedFiles(t) {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s, problems := Parse(f, data)
		for _, p := range problems {
			t.Error(p)
		}
		sources = append(sources, s...)
	}
	return Build(nil, sources, Options{})
}

func TestShippedPoliciesCompileWithoutAWarning(t *testing.T) {
	set := shippedSet(t)
	for _, p := range set.Problems() {
		t.Error(p)
	}
	if n := len(set.Statuses()); n != 9 {
		t.Errorf("%d policies are shipped, want 9", n)
	}
}

package policies

import (
	"io/fs"
	"testing"
)

// shippedSet is all shipped policies together.
func shippedSet(t testing.TB) *Set {
	t.Helper()
	files, err := fs.Glob(Shipped, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sources []Source
	for _, f := range files {
		data, err := Shipped.ReadFile(f)
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
	if n := len(set.Statuses()); n != 7 {
		t.Errorf("%d policies are shipped, want 7", n)
	}
}

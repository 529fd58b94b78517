package policies

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

func TestShippedPoliciesDecideAsTheirCasesSay(t *testing.T) {
	files, err := fs.Glob(Shipped, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path := filepath.Join("testdata", f)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("a shipped file has no cases: %v", err)
			continue
		}
		results, err := RunCases(path, data, func(p string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", p)) })
		if err != nil {
			t.Error(err)
			continue
		}
		for _, r := range results {
			t.Run(strings.TrimSuffix(f, ".yaml")+"/"+r.Name, func(t *testing.T) {
				if r.Diff != "" {
					t.Errorf("-want +got:\n%s", r.Diff)
				}
			})
		}
	}
}

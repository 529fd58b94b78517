package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/policies/casefile"
)

func TestDecisionsAreAsTheCasesSay(t *testing.T) {
	files, err := filepath.Glob("testdata/semantics/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !casefile.HasCases(data) {
			continue
		}
		results, err := casefile.Run(path, data, func(p string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(path), p)) })
		if err != nil {
			t.Error(err)
		}
		for _, r := range results {
			ran++
			t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+"/"+r.Name, func(t *testing.T) {
				if r.Diff != "" {
					t.Errorf("-want +got:\n%s", r.Diff)
				}
			})
		}
	}
	if ran < 30 {
		t.Errorf("ran only %d cases", ran)
	}
}

func TestShippedPoliciesDecideAsTheirCasesSay(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
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
		results, err := casefile.Run(path, data, func(p string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", p)) })
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

package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/casefile"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	blockName = regexp.MustCompile(`^# (\S+\.yaml)\n`)
)

// What the documentation shows works: policies compile without a warning, cases pass. A policy that
// cases ask about has its file name in the first line.
func TestExamplesOfTheDocumentationWork(t *testing.T) {
	pages, err := filepath.Glob("../docs/policies/*.md")
	if err != nil || len(pages) < 4 {
		t.Fatalf("found pages %v, %v", pages, err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
			if len(blocks) == 0 {
				t.Fatal("there is no example")
			}
			named := map[string]string{}
			for i, b := range blocks {
				at := fmt.Sprintf("%s example %d", page, i+1)
				if m := blockName.FindStringSubmatch(b[1]); m != nil {
					named[m[1]] = b[1]
				}
				if casefile.HasCases([]byte(b[1])) {
					examplePasses(t, at, b[1], named)
					continue
				}
				sources, problems := policies.Parse(at, []byte(b[1]))
				problems = append(problems, policies.Build(nil, sources, policies.Options{}).Problems()...)
				for _, p := range problems {
					t.Error(p)
				}
				if len(sources) == 0 {
					t.Errorf("%s is no policy", at)
				}
			}
		})
	}
}

func examplePasses(t *testing.T, at, text string, named map[string]string) {
	t.Helper()
	results, err := casefile.Run(at, []byte(text), func(p string) ([]byte, error) {
		policy, ok := named[p]
		if !ok {
			return nil, fmt.Errorf("no example is named %s", p)
		}
		return []byte(policy), nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, r := range results {
		if r.Diff != "" {
			t.Errorf("%s: %s:\n%s", at, r.Name, r.Diff)
		}
	}
}

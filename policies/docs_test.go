package policies

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	blockName = regexp.MustCompile(`^# (\S+\.yaml)\n`)
)

// What the documentation shows works: policies compile without a warning, cases pass. A policy that cases ask about has
// its file name in the first line.
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
				if HasCases([]byte(b[1])) {
					examplePasses(t, at, b[1], named)
					continue
				}
				sources, problems := Parse(at, []byte(b[1]))
				problems = append(problems, Build(nil, sources, Options{}).Problems()...)
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
	results, err := RunCases(at, []byte(text), func(p string) ([]byte, error) {
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

// Every field of expect and facts is in the page that explains them.
func TestTheFormatOfCasesIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/policies/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("cases.go")
	if err != nil {
		t.Fatal(err)
	}
	fields := regexp.MustCompile("`json:\"([a-zA-Z]+)").FindAllStringSubmatch(string(source), -1)
	if len(fields) < 25 {
		t.Fatalf("found %d fields", len(fields))
	}
	for _, f := range fields {
		if f[1] != "file" && f[1] != "diff" && !strings.Contains(string(text), f[1]) {
			t.Errorf("field %s is not documented", f[1])
		}
	}
}

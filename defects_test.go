package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDefectsNameTestsThatExist: the table of docs/defects.md has all 38 rows, and each names tests, scripts or benchmarks
// that are in the repository, in whichever module.
func TestDefectsNameTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("docs/defects.md")
	if err != nil {
		t.Fatal(err)
	}
	there := proofs(t)
	row := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| 11.") {
			continue
		}
		row++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Errorf("row %d has %d cells, not 4: %s", row, len(cells), line)
			continue
		}
		if want := "11." + strconv.Itoa(row); strings.TrimSpace(cells[0]) != want {
			t.Fatalf("row %s is where %s should be", strings.TrimSpace(cells[0]), want)
		}
		named := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			t.Errorf("11.%d names no test", row)
		}
		for _, m := range named {
			if !there[m[1]] {
				t.Errorf("11.%d names %s, which is not there", row, m[1])
			}
		}
	}
	if row != 38 {
		t.Errorf("%d rows, want 38", row)
	}
}

// proofs are the tests, benchmarks and scripts of the repository, by name.
func proofs(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case filepath.Ext(path) == ".txt" && filepath.Base(filepath.Dir(path)) == "testdata":
			there[d.Name()] = true
		case strings.HasSuffix(path, "_test.go"):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range function.FindAllSubmatch(source, -1) {
				there[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// TestDocumentsNameFilesThatExist: who reads how Weir is made, or how to change it, finds what that points at.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	var files []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, "/"+filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"DESIGN.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`([a-zA-Z0-9_/-]+\\.(?:go|yaml|json|md))`").FindAllStringSubmatch(string(text), -1)
		for _, m := range named {
			if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "/"+m[1]) }) {
				t.Errorf("%s names %s, which is not there", document, m[1])
			}
		}
		if len(named) == 0 {
			t.Errorf("%s: found no name of a file", document)
		}
	}
}

// TestReasonsOfEventsAreDocumented: whoever sees an Event finds its reason in docs/operating.md.
func TestReasonsOfEventsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Events\n")
	table, _, _ = strings.Cut(table, "\n## ")
	shared := map[string]string{}
	files, err := filepath.Glob("policies/v1alpha1/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		maps.Copy(shared, reasonsIn(t, f, nil))
	}
	reasons := reasonsIn(t, "controller/events/reporter.go", shared)
	for name, reason := range reasons {
		if !strings.Contains(table, "`"+reason+"`") {
			t.Errorf("the Events of docs/operating.md have no %s (%s)", reason, name)
		}
	}
	if len(reasons) == 0 {
		t.Error("found no reason")
	}
}

// reasonsIn are the constants of a file whose names begin with Reason: strings, and those of another package, by their name.
func reasonsIn(t *testing.T, path string, shared map[string]string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "Reason") {
			return true
		}
		switch value := v.Values[0].(type) {
		case *ast.BasicLit:
			found[v.Names[0].Name], err = strconv.Unquote(value.Value)
		case *ast.SelectorExpr:
			found[v.Names[0].Name] = shared[value.Sel.Name]
		}
		if err != nil || found[v.Names[0].Name] == "" {
			t.Fatalf("%s: %s is no string", path, v.Names[0].Name)
		}
		return true
	})
	return found
}

// TestCitationsOfTheReferenceResolve: RB n.n is a statement of docs/reference-behaviour.md, wherever it is cited.
func TestCitationsOfTheReferenceResolve(t *testing.T) {
	text, err := os.ReadFile("docs/reference-behaviour.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:#+ |\| )?\**([0-9]+(?:\.[0-9]+)?[a-z]?)\b`).FindAllStringSubmatch(string(text), -1) {
		there[m[1]] = true
	}
	cited := regexp.MustCompile(`\bRB ([0-9]+(?:\.[0-9]+)?[a-z]?)((?:(?:, |-| and )[0-9]+\.[0-9]+[a-z]?)*)`)
	more := regexp.MustCompile(`[0-9]+\.[0-9]+[a-z]?`)
	found := 0
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "artifacts" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !slices.Contains([]string{".go", ".md", ".yaml", ".txt"}, filepath.Ext(path)) {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range cited.FindAllStringSubmatch(string(source), -1) {
			for _, statement := range append(more.FindAllString(m[2], -1), m[1]) {
				found++
				if !there[statement] {
					t.Errorf("%s cites RB %s, which is not there", path, statement)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("found no citation")
	}
}

// TestTestsThatAreRunByHandExist: what make e2e leaves out is a test that make e2e-more runs.
func TestTestsThatAreRunByHandExist(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^E2E_MORE = (.+)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile has no E2E_MORE")
	}
	there := proofs(t)
	for name := range strings.SplitSeq(string(line[1]), "|") {
		if !there[name] {
			t.Errorf("E2E_MORE names %s, which is not there", name)
		}
	}
}

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
	"unicode/utf8"
)

// TestDocumentsNameFilesThatExist: who reads how Weir is made, or how to change it, finds what that
// points at.
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
		named := regexp.MustCompile("`([a-zA-Z0-9_/-]+\\.(?:go|yaml|json|md))`").FindAllStringSubmatch(read(t, document), -1)
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

// TestLinesOfDocumentsFit into 100 columns, but for tables, links and what a console shows.
func TestLinesOfDocumentsFit(t *testing.T) {
	lines := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".git", "bin", "artifacts"}, d.Name()) {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		shown := false
		for n, line := range strings.Split(read(t, path), "\n") {
			text := strings.TrimSpace(line)
			if strings.HasPrefix(text, "```") {
				shown = !shown
			}
			lines++
			if utf8.RuneCountInString(line) > 100 && !shown && !strings.HasPrefix(text, "|") && strings.Count(text, " ") > 2 {
				t.Errorf("%s:%d has %d columns", path, n+1, utf8.RuneCountInString(line))
			}
		}
		return nil
	})
	if err != nil || lines < 1000 {
		t.Errorf("%d lines were looked at: %v", lines, err)
	}
}

// TestNamesOnObjectsAreDocumented: whoever finds a label, an annotation or a finalizer of Weir on an
// object finds in docs/api.md who wrote it.
func TestNamesOnObjectsAreDocumented(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/api.md"), "\n## Labels, annotations and finalizers\n")
	table, _, _ = strings.Cut(table, "\n## ")
	key := regexp.MustCompile(`weir\.dev/[a-z-]+`)
	names := key.FindAllString(read(t, "policies/v1beta1/names.go"), -1)
	names = append(names, key.FindAllString(read(t, "charts/weir/templates/monitoring/services.yaml"), -1)...)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("the table of docs/api.md has no %s", name)
		}
	}
	for _, name := range key.FindAllString(table, -1) {
		if !slices.Contains(names, name) {
			t.Errorf("docs/api.md has %s, which there is not", name)
		}
	}
	if len(names) < 10 {
		t.Errorf("found only %d names", len(names))
	}
}

// TestReasonsOfEventsAreDocumented: whoever sees an Event finds its reason in docs/operating.md.
func TestReasonsOfEventsAreDocumented(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/operating.md"), "\n## Events\n")
	table, _, _ = strings.Cut(table, "\n## ")
	shared := map[string]string{}
	files, err := filepath.Glob("policies/v1beta1/*.go")
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

// reasonsIn are the constants of a file whose names begin with Reason: strings, and those of
// another package, by their name.
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

// TestCitationsOfTheReferenceResolve: RB n.n is a statement of controller/reference-behaviour.md, or a
// row of docs/defects.md, wherever it is cited.
func TestCitationsOfTheReferenceResolve(t *testing.T) {
	text := read(t, "controller/reference-behaviour.md") + read(t, "docs/defects.md")
	there := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:#+ |\| )?\**([0-9]+(?:\.[0-9]+)?[a-z]?)\b`).FindAllStringSubmatch(text, -1) {
		there[m[1]] = true
	}
	cited := regexp.MustCompile(`\bRB ([0-9]+(?:\.[0-9]+)?[a-z]?)((?:(?:, |-| and )[0-9]+\.[0-9]+[a-z]?)*)`)
	more := regexp.MustCompile(`[0-9]+\.[0-9]+[a-z]?`)
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "artifacts" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !slices.Contains([]string{".go", ".md", ".yaml", ".txt"}, filepath.Ext(path)) {
			return nil
		}
		for _, m := range cited.FindAllStringSubmatch(read(t, path), -1) {
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

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

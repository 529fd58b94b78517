package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weir-dev/weir/"

// allowed says, for each package of ours, which of our packages it may import. The direction is
// main → cmd → the edges → the pure packages → the API types; there is no way back.
var allowed = map[string][]string{
	"":                        {"cmd"},
	"cmd":                     {"controller", "webhook", "certs", "policies", "policies/live"},
	"cmd/ask":                 {"controller/insight", "controller/snapshot", "policies/v1alpha1"},
	"cmd/kubectl-weir":        {"cmd/ask"},
	"cmd/reference":           {"cmd", "cmd/ask"},
	"controller":              {"controller/graph", "controller/drain", "controller/kinds", "controller/policyfacts", "policies", "policies/live", "policies/stamps", "policies/v1alpha1"},
	"controller/graph":        {},
	"controller/insight":      {"controller/graph", "policies/v1alpha1"},
	"controller/kinds":        {"controller/graph"},
	"controller/policyfacts":  {"controller/graph", "policies"},
	"controller/snapshot":     {"controller/graph", "controller/insight", "controller/kinds", "controller/policyfacts", "policies", "policies/v1alpha1"},
	"controller/graph/script": {"controller/graph"},
	"controller/graph/sim":    {"controller/graph", "controller/graph/script", "controller/drain"},
	"controller/drain":        {"controller/graph", "policies/v1alpha1"},
	"webhook":                 {"policies", "policies/live", "policies/stamps", "policies/v1alpha1"},
	"certs":                   {},
	"policies":                {"policies/v1alpha1"},
	"policies/apitest":        {},
	"policies/live":           {"policies", "policies/v1alpha1"},
	"policies/stamps":         {"policies", "policies/v1alpha1"},
	"policies/v1alpha1":       {},
}

// forbidden are packages that the pure core must not import: it does no I/O and reads no clock.
var forbidden = map[string][]string{
	"controller/graph": {"context", "net", "os", "sync", "time", "log", "math/rand", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/go-logr"},
	// A moment comes in as an argument: insight tells ages.
	"controller/insight": {"context", "net", "os", "log", "math/rand", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/go-logr"},
}

func TestPackagesImportOnlyDownwards(t *testing.T) {
	files := 0
	eachGoFile(t, func(dir, path string, imports []string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		files++
		for _, imp := range imports {
			for _, bad := range forbidden[dir] {
				if imp == bad || strings.HasPrefix(imp, bad+"/") {
					t.Errorf("%s imports %s: package %s is pure", path, imp, dir)
				}
			}
			ours, ok := strings.CutPrefix(imp, module)
			if !ok {
				continue
			}
			if !slices.Contains(allowed[dir], ours) {
				t.Errorf("%s imports %s: not downwards, or not in the table of this test", path, ours)
			}
		}
	})
	if files < 20 {
		t.Errorf("looked at %d files only", files)
	}
}

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	comments := map[string][]string{}
	eachGoFile(t, func(dir, path string, _ []string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		comments[dir] = append(comments[dir], "")
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			comments[dir] = append(comments[dir], path)
		}
	})
	for dir, files := range comments {
		var with []string
		for _, f := range files {
			if f != "" {
				with = append(with, f)
			}
		}
		if len(with) != 1 {
			t.Errorf("package %q has %d package comments: %v", dir, len(with), with)
		}
	}
}

// eachGoFile visits the root module's files: e2e is a module of its own.
func eachGoFile(t *testing.T, visit func(dir, path string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (nested == nil || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, i := range f.Imports {
			imports = append(imports, strings.Trim(i.Path.Value, `"`))
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if dir == "." {
			dir = ""
		}
		visit(dir, path, imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

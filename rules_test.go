package main

import (
	"go/ast"
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
	"":                 {"cmd"},
	"cmd":              {"controller", "controller/beside", "controller/brake", "controller/doctor", "controller/enforce", "controller/events", "controller/leases", "controller/release", "controller/requested", "controller/shadow/report", "webhook", "certs", "policies", "policies/casefile", "policies/live", "policies/v1alpha1"},
	"cmd/ask":          {"cmd/ask/page", "controller/insight", "controller/shadow/report", "controller/snapshot", "controller/words", "policies/v1alpha1"},
	"cmd/ask/page":     {"controller/insight", "controller/snapshot"},
	"cmd/kubectl-weir": {"cmd/ask"},
	"cmd/reference":    {"cmd", "cmd/ask"},
	"controller": {"controller/beside", "controller/brake", "controller/collect", "controller/compare", "controller/enforce", "controller/events", "controller/follow", "controller/graph",
		"controller/kinds", "controller/leases", "controller/namespaces", "controller/request", "controller/requested", "controller/shadow", "policies", "policies/live"},
	"controller/await":       {},
	"controller/beside":      {"controller/await", "controller/graph", "controller/kinds", "controller/leases", "policies", "policies/v1alpha1"},
	"controller/brake":       {"controller/follow", "controller/graph", "controller/kinds", "controller/words", "policies/v1alpha1"},
	"controller/collect":     {"controller/await", "controller/events", "controller/follow", "controller/graph", "controller/request"},
	"controller/compare":     {"controller/await", "controller/follow", "controller/graph", "controller/kinds", "controller/request"},
	"controller/doctor":      {},
	"controller/enforce":     {"controller/await", "controller/events", "controller/follow", "controller/graph", "controller/request", "controller/words", "policies", "policies/live", "policies/finalizers", "policies/v1alpha1"},
	"controller/events":      {"controller/graph", "controller/request", "controller/words", "policies", "policies/v1alpha1"},
	"controller/clustertest": {"controller", "controller/fixture", "controller/namespaces", "policies/apitest", "policies/live"},
	"controller/fixture":     {"controller/graph", "policies/apitest"},
	"controller/follow":      {"controller/await", "controller/graph", "controller/graph/dot", "controller/kinds", "controller/policyfacts", "controller/metaonly", "policies", "policies/v1alpha1"},
	"controller/namespaces": {"controller/await", "controller/drain", "controller/events", "controller/follow", "controller/graph", "controller/kinds", "controller/request",
		"controller/words", "policies", "policies/live", "policies/v1alpha1"},
	"controller/release":       {"controller/graph", "controller/kinds", "controller/request", "policies", "policies/finalizers", "policies/v1alpha1"},
	"controller/request":       {"controller/follow", "controller/graph", "controller/kinds", "controller/metaonly"},
	"controller/requested":     {"controller/graph", "controller/words"},
	"controller/graph":         {"controller/words"},
	"controller/insight":       {"controller/graph", "controller/graph/dot", "controller/words", "policies/v1alpha1"},
	"controller/kinds":         {"controller/graph"},
	"controller/leases":        {"controller/graph"},
	"controller/policyfacts":   {"controller/graph", "policies"},
	"controller/snapshot":      {"controller/await", "controller/graph", "controller/insight", "controller/kinds", "controller/metaonly", "controller/policyfacts", "controller/words", "policies", "policies/finalizers", "policies/v1alpha1"},
	"controller/words":         {},
	"controller/shadow":        {"controller/drain", "controller/follow", "controller/graph", "controller/kinds", "controller/shadow/report", "controller/words"},
	"controller/shadow/report": {"controller/words"},
	"controller/graph/dot":     {"controller/graph"},
	"controller/graph/script":  {"controller/graph", "controller/graph/dot"},
	"controller/graph/sim":     {"controller/graph", "controller/graph/script", "controller/drain"},
	"controller/drain":         {"controller/words"},
	"webhook":                  {"controller/words", "policies", "policies/live", "policies/finalizers", "policies/v1alpha1"},
	"certs":                    {"controller/await"},
	"policies":                 {"controller/drain", "controller/words", "policies/cel", "policies/v1alpha1"},
	"policies/apitest":         {},
	"policies/casefile":        {"policies"},
	"policies/cel":             {},
	"policies/live":            {"controller/await", "policies", "policies/v1alpha1"},
	"policies/finalizers":      {"controller/metaonly", "policies", "policies/v1alpha1"},
	"policies/v1alpha1":        {},
}

// effects are what a pure package does not import: it does no I/O, and is told of chance.
var effects = []string{"net", "os", "log", "math/rand", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/go-logr", "github.com/prometheus"}

func effectsAnd(more ...string) []string { return append(more, effects...) }

// forbidden says what the pure packages must not import. None reads a clock: a moment, how long something took, and may take, come in as
// arguments.
var forbidden = map[string][]string{
	"controller/doctor":        effectsAnd("context", "sync", "k8s.io"),
	"controller/drain":         effectsAnd("context", "sync"),
	"controller/graph":         effectsAnd("context", "sync", "time"),
	"controller/graph/dot":     effectsAnd("context", "sync", "time"),
	"controller/insight":       effectsAnd("context"),
	"controller/policyfacts":   effectsAnd("context", "sync", "time"),
	"controller/words":         effectsAnd("context", "sync", "time", "k8s.io"),
	"controller/shadow/report": effectsAnd("context", "sync"),
	// Those of scripts are written as in addresses (net/url); the simulation draws from a seed.
	"controller/graph/script": {"context", "net/http", "os", "sync", "time", "log", "math/rand", "k8s.io/client-go"},
	"controller/graph/sim":    {"context", "net", "os", "sync", "time", "log", "k8s.io/client-go"},
	// Schemas are made once, and one of the functions that check by them takes a context that it does not look at.
	"policies":          effects,
	"policies/casefile": effectsAnd("context", "sync", "time"),
	"policies/cel":      effectsAnd("context", "time"),
	"policies/v1alpha1": effectsAnd("context", "sync", "time"),
}

// clock are functions that read one, or wait for it.
var clock = map[string][]string{
	"time":   {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"},
	"metav1": {"Now", "NowMicro"},
}

func TestPurePackagesReadNoClock(t *testing.T) {
	looked := map[string]int{}
	eachGoFile(t, func(dir, path string, _ []string) {
		if _, pure := forbidden[dir]; !pure || strings.HasSuffix(path, "_test.go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		looked[dir]++
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && slices.Contains(clock[x.Name], s.Sel.Name) {
					t.Errorf("%s reads %s.%s: package %s is pure", files.Position(n.Pos()), x.Name, s.Sel.Name, dir)
				}
			}
			return true
		})
	})
	for dir := range forbidden {
		if looked[dir] == 0 {
			t.Errorf("there is no package %q to be pure", dir)
		}
	}
}

func TestPackagesImportOnlyDownwards(t *testing.T) {
	files := 0
	used := map[string][]string{}
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
			used[dir] = append(used[dir], ours)
			if !slices.Contains(allowed[dir], ours) {
				t.Errorf("%s imports %s: not downwards, or not in the table of this test", path, ours)
			}
		}
	})
	for dir, imports := range allowed {
		for _, ours := range imports {
			if !slices.Contains(used[dir], ours) {
				t.Errorf("the table lets %q import %s, and nothing there does", dir, ours)
			}
		}
	}
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

// TestPackageCommentsTellOfLocksAndGoroutines: a package that has a lock, or begins goroutines, says in its comment what the lock guards, and
// who joins the goroutines. Whoever changes it has to know.
func TestPackageCommentsTellOfLocksAndGoroutines(t *testing.T) {
	locks, goroutines, comments := map[string]string{}, map[string]string{}, map[string]string{}
	eachGoFile(t, func(dir, path string, _ []string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			comments[dir] = strings.ToLower(f.Doc.Text())
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				goroutines[dir] = files.Position(n.Pos()).String()
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
					goroutines[dir] = files.Position(n.Pos()).String()
				}
			case *ast.Field:
				if mutexes(n.Type, len(n.Names)) > 0 {
					locks[dir] = files.Position(n.Pos()).String()
				}
			}
			return true
		})
	})
	for what, found := range map[string]map[string]string{"lock": locks, "goroutine": goroutines} {
		for dir, where := range found {
			if !strings.Contains(comments[dir], what) {
				t.Errorf("the comment of package %q tells nothing of its %ss, as at %s", dir, what, where)
			}
		}
		if len(found) < 10 {
			t.Errorf("found %ss in %d packages only", what, len(found))
		}
	}
}

// eachGoFile visits the root module's files: e2e is a module of its own.
func eachGoFile(t *testing.T, visit func(dir, path string, imports []string)) {
	t.Helper()
	eachGoFileOf(t, rootModule, visit)
}

const (
	rootModule  = false
	everyModule = true
)

func eachGoFileOf(t *testing.T, nestedToo bool, visit func(dir, path string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (nested == nil && !nestedToo || strings.HasPrefix(d.Name(), ".")) {
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

// longFunctions may have more than 60 lines, and why.
var longFunctions = map[string]string{
	"controller/graph/decide.go row": "the rows of the decision table, one after the other, as the table in doc.go has them",
}

func TestFunctionsAreShort(t *testing.T) {
	const most = 60
	looked := 0
	found := map[string]bool{}
	eachGoFileOf(t, everyModule, func(_, path string, _ []string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			looked++
			name := filepath.ToSlash(path) + " " + fn.Name.Name
			lines := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1
			if lines <= most {
				continue
			}
			if found[name] = true; longFunctions[name] == "" {
				t.Errorf("%s has %d lines, and %d are enough", name, lines, most)
			}
		}
	})
	for name := range longFunctions {
		if !found[name] {
			t.Errorf("%s is short, and need not be excused", name)
		}
	}
	if looked < 2000 {
		t.Fatalf("looked at %d functions only", looked)
	}
}

// ownGoroutines are functions that begin a goroutine with go, and how it is joined. All others begin them in a sync.WaitGroup, which a function
// waits for.
var ownGoroutines = map[string]string{
	"cmd/ask/ask.go objectsIn":                "files and standard input know no context; Ctrl-C leaves it behind, and the process ends",
	"cmd/ask/forward.go forward":              "dialers know no context; what it sends is received, whatever comes",
	"controller/controller.go Lead":           "what it sends is received, whatever comes",
	"controller/enforce/canary.go try":        "what it sends is received, whatever comes",
	"controller/enforce/webhookconfig.go run": "its end is waited for",
	"controller/beside/migration.go Hold":     "its end is waited for",
	"policies/apitest/watch.go watch":         "an API server in memory: they end with the request",
}

// TestGoroutinesAreJoined: what is over when its caller is over can be told, and stopped.
func TestGoroutinesAreJoined(t *testing.T) {
	found := map[string]bool{}
	eachGoFile(t, func(_, path string, _ []string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := filepath.ToSlash(path) + " " + fn.Name.Name
			ast.Inspect(fn, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					if found[name] = true; ownGoroutines[name] == "" {
						t.Errorf("%s: %s begins a goroutine that is not joined: use a sync.WaitGroup", files.Position(n.Pos()), fn.Name.Name)
					}
				}
				return true
			})
		}
	})
	for name := range ownGoroutines {
		if !found[name] {
			t.Errorf("%s begins no goroutine, and need not be excused", name)
		}
	}
}

// TestLocalsShadowNoConstantOrVariable: a name of a package means one thing in all of it.
func TestLocalsShadowNoConstantOrVariable(t *testing.T) {
	global := map[string]map[string]bool{} // by package
	eachOf := func(visit func(dir, path string, f *ast.File, files *token.FileSet)) {
		eachGoFile(t, func(dir, path string, _ []string) {
			if strings.HasSuffix(path, "_test.go") {
				return
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			visit(dir, path, f, files)
		})
	}
	eachOf(func(dir, _ string, f *ast.File, _ *token.FileSet) {
		for _, d := range f.Decls {
			values, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range values.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						if global[dir] == nil {
							global[dir] = map[string]bool{}
						}
						global[dir][name.Name] = name.Name != "_"
					}
				}
			}
		}
	})
	eachOf(func(dir, _ string, f *ast.File, files *token.FileSet) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				for _, name := range locals(fn) {
					if global[dir][name.Name] {
						t.Errorf("%s: %s is a constant, or variable, of the package, too", files.Position(name.Pos()), name.Name)
					}
				}
			}
		}
	})
}

// locals are the names that a function declares: its arguments and results, and those in it.
func locals(fn *ast.FuncDecl) (names []*ast.Ident) {
	of := func(list []ast.Expr) {
		for _, x := range list {
			if name, ok := x.(*ast.Ident); ok {
				names = append(names, name)
			}
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType, *ast.InterfaceType:
			return false // their fields shadow nothing
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				of(n.Lhs)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				of([]ast.Expr{n.Key, n.Value})
			}
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		}
		return true
	})
	return names
}

// sleepers are functions of tests that call time.Sleep outside of what they give to synctest.Test themselves, for tests that run by its clock.
var sleepers = map[string]string{
	"controller/beside/lag_test.go TestWhatTheBuiltInCollectorTakesIsObserved":       "a step of its table, which runs by that clock",
	"controller/beside/migration_test.go work":                                       "work that takes its time to end",
	"controller/beside/spaces_test.go TestWhatTheNamespaceControllerTakesIsObserved": "a step of its table, which runs by that clock",
	"controller/brake/guard_test.go lets":                                            "another collector, which asks again later and later",
	"controller/metaonly/conn_test.go Read":                                          "a connection on which bytes come later",
}

// TestNoTestSleeps but by the clock of testing/synctest, where no time passes: all others wait for the thing itself.
func TestNoTestSleeps(t *testing.T) {
	found := map[string]bool{}
	eachGoFileOf(t, everyModule, func(_, path string, _ []string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !sleeps(fn) {
				continue
			}
			name := filepath.ToSlash(path) + " " + fn.Name.Name
			if found[name] = true; sleepers[name] == "" {
				t.Errorf("%s sleeps: wait for the thing itself, or use testing/synctest", name)
			}
		}
	})
	for name := range sleepers {
		if !found[name] {
			t.Errorf("%s does not sleep, and need not be excused", name)
		}
	}
}

// sleeps tells whether a function calls time.Sleep in anything but what it gives to synctest.Test.
func sleeps(fn *ast.FuncDecl) (yes bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isOf(call.Fun, "synctest", "Test") {
			return false
		}
		e, ok := n.(ast.Expr)
		yes = yes || ok && isOf(e, "time", "Sleep")
		return !yes
	})
	return yes
}

// isOf tells whether an expression is a name of another package.
func isOf(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

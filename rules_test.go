package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// These are the rules of the repository that no linter knows. The others are in .golangci.yaml.

const module = "github.com/weir-dev/weir/"

// allowed says which of our packages each of ours imports: those that are not here, none. The
// direction is main → cmd → the edges → the pure packages → the API types; there is no way back.
var allowed = map[string][]string{
	"":                 {"cmd"},
	"cmd":              {"controller", "controller/beside", "controller/brake", "internal/tools/doctor", "controller/enforce", "controller/events", "controller/leases", "internal/tools/release", "controller/words", "internal/tools/shadow/report", "internal/version", "webhook", "certs", "policies", "policies/casefile", "policies/live", "policies/v1beta1"},
	"ask":              {"ask/page", "ask/insight", "internal/tools/shadow/report", "internal/version", "ask/snapshot", "controller/words", "policies/v1beta1", "archive", "archive/restore", "ask/undo"},
	"archive/restore":  {"policies/v1beta1"},
	"ask/undo":         {"archive/restore", "controller/kinds", "policies/v1beta1"},
	"cmd/kubectl-weir": {"ask"},
	"controller": {"archive", "controller/undo", "controller/await", "controller/beside", "controller/brake", "controller/collect", "controller/enforce", "controller/events", "controller/follow", "controller/graph",
		"controller/kinds", "controller/leases", "controller/namespaces", "controller/request", "internal/tools/shadow", "policies", "policies/live"},
	"controller/beside":            {"controller/await", "controller/events", "controller/graph", "controller/kinds", "policies/v1beta1"},
	"controller/brake":             {"controller/await", "controller/events", "controller/follow", "controller/graph", "controller/kinds", "controller/words", "policies/v1beta1"},
	"controller/collect":           {"controller/await", "controller/events", "controller/follow", "controller/graph", "controller/request", "controller/words"},
	"controller/enforce":           {"controller/await", "controller/events", "controller/follow", "controller/graph", "controller/request", "controller/undo", "controller/words", "policies", "policies/live", "policies/finalizers", "policies/v1beta1"},
	"controller/events":            {"controller/graph", "controller/kinds", "controller/request", "controller/words", "policies", "policies/v1beta1"},
	"internal/testkit/clustertest": {"controller", "internal/testkit/fixture", "controller/namespaces", "internal/testkit/apitest", "policies/live"},
	"internal/testkit/fixture":     {"controller/graph", "internal/testkit/apitest"},
	"controller/follow":            {"controller/await", "controller/graph", "controller/kinds", "controller/policyfacts", "controller/metaonly", "policies", "policies/v1beta1"},
	"controller/namespaces": {"controller/await", "controller/drain", "controller/events", "controller/follow", "controller/graph", "controller/kinds", "controller/request",
		"controller/undo", "controller/words", "policies", "policies/live", "policies/v1beta1"},
	"internal/tools/release":       {"controller/graph", "controller/kinds", "controller/request", "policies", "policies/finalizers", "policies/v1beta1"},
	"controller/request":           {"controller/follow", "controller/graph", "controller/kinds", "controller/metaonly", "controller/words", "policies/v1beta1"},
	"controller/undo":              {"archive", "controller/await", "controller/events", "controller/follow", "controller/graph", "controller/kinds", "controller/request", "controller/words", "policies", "policies/v1beta1"},
	"controller/graph":             {"controller/words"},
	"ask/insight":                  {"archive/restore", "controller/graph", "controller/words", "policies/v1beta1"},
	"controller/kinds":             {"controller/graph"},
	"controller/leases":            {"controller/await", "controller/graph"},
	"controller/policyfacts":       {"controller/graph", "policies"},
	"ask/snapshot":                 {"controller/graph", "ask/insight", "controller/kinds", "controller/metaonly", "controller/policyfacts", "controller/words", "policies", "policies/finalizers", "policies/v1beta1"},
	"internal/tools/shadow":        {"controller/follow", "controller/graph", "internal/tools/shadow/report", "controller/words"},
	"internal/tools/shadow/report": {"controller/words"},
	"internal/testkit/script":      {"controller/graph"},
	"internal/testkit/sim":         {"controller/graph", "internal/testkit/script", "controller/drain"},
	"controller/drain":             {"controller/words"},
	"webhook":                      {"controller/words", "policies", "policies/live", "policies/finalizers", "policies/v1beta1"},
	"certs":                        {"controller/await"},
	"archive":                      {"policies/v1beta1"},
	"policies":                     {"controller/drain", "controller/graph", "controller/words", "policies/cel", "policies/v1beta1"},
	"policies/casefile":            {"policies"},
	"policies/live":                {"controller/await", "policies", "policies/v1beta1"},
	"policies/finalizers":          {"controller/metaonly", "policies", "policies/v1beta1"},
}

func TestPackagesImportOnlyDownwards(t *testing.T) {
	found := map[string][]string{}
	for _, s := range code(t) {
		for _, i := range s.Imports {
			ours, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
			if ok && !slices.Contains(found[s.dir], ours) {
				found[s.dir] = append(found[s.dir], ours)
			}
		}
	}
	sorted := cmpopts.SortSlices(strings.Compare)
	if diff := cmp.Diff(allowed, found, sorted); diff != "" {
		t.Errorf("imports (-allowed +found; is each downwards?):\n%s", diff)
	}
}

// TestPurePackagesExist: .golangci.yaml names the pure packages for two linters, one of which looks
// at imports and the other at clocks. Neither says that a package is not there.
func TestPurePackagesExist(t *testing.T) {
	config, err := os.ReadFile(".golangci.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pure := map[string]int{}
	list := regexp.MustCompile(`(controller|ask|internal|policies|archive)/[({]([a-z0-9/]+(?:[,|][a-z0-9/]+)*)[)}]`)
	for _, m := range list.FindAllStringSubmatch(string(config), -1) {
		for name := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == ',' || r == '|' }) {
			pure[m[1]+"/"+name]++
		}
	}
	there := map[string]bool{}
	for _, s := range code(t) {
		there[s.dir] = true
	}
	for dir, lists := range pure {
		if !there[dir] || lists != 2 {
			t.Errorf("%s: is there: %t; is named by %d of 2 linters", dir, there[dir], lists)
		}
	}
	if len(pure) == 0 {
		t.Error(".golangci.yaml names no pure packages")
	}
}

// TestPackageCommentsTellOfLocksAndGoroutines: a package that has a lock, or begins goroutines,
// says in its one comment what the lock guards, and who joins the goroutines. Whoever changes it
// has to know.
func TestPackageCommentsTellOfLocksAndGoroutines(t *testing.T) {
	locks, goroutines, comments := map[string]string{}, map[string]string{}, map[string]string{}
	for _, s := range code(t) {
		if s.Doc != nil {
			if comments[s.dir] != "" {
				t.Errorf("%s: package %q has another comment", s.path, s.dir)
			}
			comments[s.dir] = strings.ToLower(s.Doc.Text())
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				goroutines[s.dir] = at(n)
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Go" {
					goroutines[s.dir] = at(n)
				}
			case *ast.Field:
				if isOf(n.Type, "sync", "Mutex") || isOf(n.Type, "sync", "RWMutex") {
					locks[s.dir] = at(n)
				}
			}
			return true
		})
	}
	for what, found := range map[string]map[string]string{"lock": locks, "goroutine": goroutines} {
		for dir, where := range found {
			if !strings.Contains(comments[dir], what) {
				t.Errorf("the comment of package %q tells nothing of its %ss, as at %s", dir, what, where)
			}
		}
		if len(found) == 0 {
			t.Errorf("found no %ss", what)
		}
	}
}

// ownGoroutines are functions that begin a goroutine with go, and how it is joined. All others
// begin them in a sync.WaitGroup, which a function waits for.
var ownGoroutines = map[string]string{
	"controller/controller.go Lead":           "what it sends is received, whatever comes",
	"internal/testkit/apitest/watch.go watch": "an API server in memory: they end with the request",
}

// TestGoroutinesAreJoined: what is over when its caller is over can be told, and stopped.
func TestGoroutinesAreJoined(t *testing.T) {
	found := map[string]bool{}
	for _, s := range code(t) {
		for _, fn := range s.functions() {
			ast.Inspect(fn, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					found[s.path+" "+fn.Name.Name] = true
				}
				return true
			})
		}
	}
	excused(t, found, ownGoroutines, "begins a goroutine that is not joined: use a sync.WaitGroup")
}

// excused compares what breaks a rule with what may, which has a reason.
func excused(t *testing.T, found map[string]bool, may map[string]string, breaks string) {
	t.Helper()
	for name := range found {
		if may[name] == "" {
			t.Errorf("%s %s", name, breaks)
		}
	}
	for name := range may {
		if !found[name] {
			t.Errorf("%s need not be excused", name)
		}
	}
}

// TestLocalsShadowNoConstantOrVariable: a name of a package means one thing in all of it.
func TestLocalsShadowNoConstantOrVariable(t *testing.T) {
	global := map[string]bool{} // with its package
	for _, s := range code(t) {
		for _, d := range s.Decls {
			values, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range values.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						global[s.dir+"."+name.Name] = name.Name != "_"
					}
				}
			}
		}
	}
	for _, s := range code(t) {
		for _, fn := range s.functions() {
			for _, name := range locals(fn) {
				if global[s.dir+"."+name.Name] {
					t.Errorf("%s: %s is a constant, or variable, of the package, too", at(name), name.Name)
				}
			}
		}
	}
	if len(global) == 0 {
		t.Error("found no constants, and no variables")
	}
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

// sleepers are functions of tests that call time.Sleep outside of what they give to synctest.Test
// themselves, for tests that run by its clock.
var sleepers = map[string]string{
	"controller/metaonly/conn_test.go Read": "a connection on which bytes come later",
}

// TestNoTestSleeps but by the clock of testing/synctest, where no time passes: all others wait for
// the thing itself. A linter sees time.Sleep, and not by which clock.
func TestNoTestSleeps(t *testing.T) {
	found := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, fn := range s.functions() {
			if sleeps(fn) {
				found[s.path+" "+fn.Name.Name] = true
			}
		}
	}
	excused(t, found, sleepers, "sleeps: wait for the thing itself, or use testing/synctest")
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

// A source is a Go file.
type source struct {
	dir, path string // the root's directory is ""
	test      bool
	nested    bool // in a module that is not the root's
	*ast.File
}

var positions = token.NewFileSet()

func at(n ast.Node) string { return positions.Position(n.Pos()).String() }

func (s source) functions() (list []*ast.FuncDecl) {
	for _, d := range s.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			list = append(list, fn)
		}
	}
	return list
}

// code is that of the root module, without tests.
func code(t *testing.T) []source {
	t.Helper()
	return slices.DeleteFunc(sources(t), func(s source) bool { return s.nested || s.test })
}

// sources are those of all modules.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(list)
}

var parsed = sync.OnceValues(func() (list []source, err error) {
	nested := "-" // the directory of the nested module that was met last
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if path = filepath.ToSlash(path); d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(path + "/go.mod"); err == nil && !strings.HasPrefix(path, nested) {
				nested = path + "/"
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		list = append(list, source{
			dir:    strings.TrimSuffix(strings.TrimSuffix(path, d.Name()), "/"),
			path:   path,
			test:   strings.HasSuffix(path, "_test.go"),
			nested: strings.HasPrefix(path, nested),
			File:   f,
		})
		return err
	})
	return list, err
})

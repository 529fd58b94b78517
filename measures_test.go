package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// measures are what is counted of a package.
type measures struct {
	files, lines, comments, tests int // tests: their lines
	mutexes                       int
}

// edge tells whether a package does I/O: what is neither pure nor only for tests.
func edge(dir string) bool {
	_, pure := forbidden[dir]
	return !pure && !slices.Contains([]string{"", "cmd/kubectl-weir", "cmd/reference", "controller/clustertest", "controller/fixture", "policies/apitest"}, dir)
}

// TestMeasures prints the figures of DESIGN.md, with -v.
func TestMeasures(t *testing.T) {
	of := map[string]*measures{}
	var functions, lengths []int // in lines; of functions, and of files
	eachGoFile(t, func(dir, path string, _ []string) {
		if strings.HasPrefix(filepath.Base(path), "zz_generated") {
			return
		}
		m := of[dir]
		if m == nil {
			m = &measures{}
			of[dir] = m
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		from := func(n ast.Node) int { return files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1 }
		lines := files.Position(f.FileEnd).Line
		if strings.HasSuffix(path, "_test.go") {
			m.tests += lines
			return
		}
		m.files, m.lines, lengths = m.files+1, m.lines+lines, append(lengths, lines)
		for _, c := range f.Comments {
			m.comments += from(c)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				functions = append(functions, from(n))
				return false // a mutex in a function is seen by nothing else
			case *ast.Field:
				m.mutexes += mutexes(n.Type, len(n.Names))
			case *ast.ValueSpec:
				m.mutexes += mutexes(n.Type, len(n.Names))
			}
			return true
		})
	})
	var all, edges measures
	for _, dir := range slices.Sorted(maps.Keys(of)) {
		m := of[dir]
		all.add(m)
		if edge(dir) {
			edges.add(m)
		}
		t.Logf("%-24s %s", cmp.Or(dir, "main"), m)
	}
	t.Logf("%-24s %s", "the edge", &edges)
	t.Logf("%-24s %s", "all", &all)
	for what, lines := range map[string][]int{"functions": functions, "files": lengths} {
		slices.Sort(lines)
		t.Logf("%d %s, of %d lines (median), %d (90 of 100), %d at most", len(lines), what, lines[len(lines)/2], lines[len(lines)*9/10], lines[len(lines)-1])
	}
}

func mutexes(of ast.Expr, names int) int {
	s, ok := of.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Mutex" && s.Sel.Name != "RWMutex" {
		return 0
	}
	return max(names, 1)
}

func (m *measures) add(o *measures) {
	m.files, m.lines, m.comments, m.tests, m.mutexes = m.files+o.files, m.lines+o.lines, m.comments+o.comments, m.tests+o.tests, m.mutexes+o.mutexes
}

func (m *measures) String() string {
	return fmt.Sprintf("%3d files, %5d lines, %2d in 100 comments, %.2f lines of tests for one, %d mutexes",
		m.files, m.lines, 100*m.comments/max(m.lines, 1), float64(m.tests)/float64(max(m.lines, 1)), m.mutexes)
}

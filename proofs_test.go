package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachPromiseHasItsProof: each heading, each item of a list that begins in bold, and each row
// of a table that says what to expect, is in docs/proofs.md.
func TestEachPromiseHasItsProof(t *testing.T) {
	claimed := rowsOf(t, "docs/proofs.md")
	for under, path := range map[string]string{"README": "README.md", "security.md": "docs/security.md", "failure-modes.md": "docs/failure-modes.md"} {
		var promises []string
		for _, m := range regexp.MustCompile(`(?m)^(?:## |[-*] \*\*)(.+?)(?:\*\*.*)?$`).FindAllStringSubmatch(read(t, path), -1) {
			promises = append(promises, m[1])
		}
		for _, r := range rowsOf(t, path) {
			if r.header[0] == "what is down" || r.header[0] == "kind" {
				promises = append(promises, r.cells[0])
			}
		}
		for _, p := range promises {
			if !slices.ContainsFunc(claimed, func(r row) bool {
				promise := strings.TrimRight(plain(p), ".,")
				more, ok := strings.CutPrefix(plain(r.cells[1])+":", promise)
				return r.under == under && (plain(r.cells[0]) == promise || ok && strings.ContainsAny(more[:1], ".:"))
			}) {
				t.Errorf("docs/proofs.md does not say what proves %q of %s", p, path)
			}
		}
	}
}

// TestProofsExist: each row names tests of the repository, in whichever module, which are run where
// and when it says, or says that nothing proves it.
func TestProofsExist(t *testing.T) {
	there := proofsOf(t)
	for _, document := range []string{"docs/proofs.md", "docs/security.md", "docs/defects.md"} {
		for _, r := range rowsOf(t, document) {
			last := r.cells[len(r.cells)-1]
			if !slices.Contains([]string{"proof", "test"}, r.header[len(r.header)-1]) || last == "nothing" {
				continue
			}
			named := regexp.MustCompile("`([^`]+)`(?: \\(([^)]+)\\))?").FindAllStringSubmatch(last, -1)
			if len(named) == 0 && !strings.Contains(last, "](security.md#threats") {
				t.Errorf("%s: %s names no test", document, r.cells[0])
			}
			for _, m := range named {
				said := strings.Join(regexp.MustCompile("chart|web|node|full|long").FindAllString(m[2], -1), " ")
				if files := there(m[1]); len(files) == 0 {
					t.Errorf("%s: %s names %s, which is not there", document, r.cells[0], m[1])
				} else if !slices.ContainsFunc(files, func(path string) bool { return ringOf(t, path, m[1]) == said }) {
					t.Errorf("%s: %s says (%s) of %s, which is run by %q", document, r.cells[0], m[2], m[1], ringOf(t, files[0], m[1]))
				}
			}
		}
	}
}

// ringOf tells what a row has to say of a test: where it is run if not as a Go test, and when if not on every change.
func ringOf(t *testing.T, path, name string) string {
	t.Helper()
	where := map[string]string{"charts/weir/tests": "chart", "e2e/web": "web", "e2e/stories": "node"}[filepath.ToSlash(filepath.Dir(path))]
	when := regexp.MustCompile(`\bfull$`).FindString(regexp.MustCompile(`(?m)^//go:build .*$`).FindString(read(t, path)))
	if story, ok := strings.CutPrefix(name, "TestStories/"); ok && !regexp.MustCompile(`"?`+strings.ReplaceAll(story, "-", "-?")+`"?, .*, false}`).MatchString(strings.ToLower(read(t, path))) {
		when = "full"
	}
	if path == "Makefile" && !strings.Contains(read(t, ".ci/run"), " "+name+"\n") {
		when = "long"
	}
	return strings.TrimSpace(where + " " + when)
}

// row is one of a table: under which heading, and below which cells.
type row struct {
	under         string
	header, cells []string
}

func rowsOf(t *testing.T, document string) (rows []row) {
	t.Helper()
	under, header := "", []string(nil)
	for line := range strings.Lines(read(t, document)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch heading, isHeading := strings.CutPrefix(line, "## "); {
		case isHeading:
			under = plain(heading)
		case !strings.HasPrefix(line, "|"):
			header = nil
		case header == nil:
			header = cells
		case !strings.HasPrefix(line, "|--"):
			rows = append(rows, row{under, header, cells})
		}
	}
	return rows
}

// plain is a text of Markdown without its marks.
func plain(text string) string {
	text = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`).ReplaceAllString(text, "$1")
	return strings.TrimSpace(strings.NewReplacer("`", "", "**", "").Replace(text))
}

// proofsOf finds the files that have a test, a benchmark, a script, a case of the chart's suites,
// or a target of the Makefile. What follows a / is in one of the files beside it, in quotes, or as
// a claim of a script (## …).
func proofsOf(t *testing.T) func(name string) []string {
	t.Helper()
	files, packages := map[string][]string{}, map[string]string{}
	add := func(path, prefix string, names *regexp.Regexp) {
		source := read(t, path)
		packages[filepath.Dir(path)] += regexp.MustCompile(`(?m)^## (.+)$`).ReplaceAllString(source, `"$1"`)
		for _, m := range names.FindAllStringSubmatch(source, -1) {
			files[prefix+m[1]] = append(files[prefix+m[1]], path)
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch in := filepath.ToSlash(filepath.Dir(path)); {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case path == "Makefile":
			add(path, "make ", regexp.MustCompile(`(?m)^([a-z0-9-]+):`))
		case in == "charts/weir/tests" && !d.IsDir():
			add(path, "", regexp.MustCompile(`(?m)^- it: (.+)$`))
		case filepath.Ext(path) == ".txt" && filepath.Base(in) == "testdata":
			add(path, d.Name(), regexp.MustCompile(`\A()`))
		case strings.HasSuffix(path, "_test.go"):
			add(path, "", regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) []string {
		name, part, _ := strings.Cut(name, "/")
		return slices.DeleteFunc(slices.Clone(files[name]), func(path string) bool {
			return part != "" && !strings.Contains(packages[filepath.Dir(path)], `"`+part+`"`)
		})
	}
}

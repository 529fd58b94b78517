package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	if len(there) < 300 {
		t.Fatalf("found %d tests only", len(there))
	}
	return there
}

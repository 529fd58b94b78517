package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

const sampled = `seconds,phase,made,weir
0.0,populate,0.0,
1.0,populate,50.0,
2.5,start,0.0,60.5
3.5,start,1.0,61.0
4.5,floor,1.0,
5.5,floor,1.0,62.0
`

func TestTableIsReadByColumnAndStage(t *testing.T) {
	table, err := read(strings.NewReader(sampled))
	if err != nil {
		t.Fatal(err)
	}
	made, err := table.lines("made")
	if err != nil || len(made) != 1 || len(made[0]) != 6 || made[0][1] != (plotter.XY{X: 1, Y: 50}) {
		t.Errorf("made: %v, %v", made, err)
	}
	// Nothing is drawn where the process did not run.
	weir, err := table.lines("weir")
	if err != nil || len(weir) != 2 || !slices.Equal(weir[0], plotter.XYs{{X: 2.5, Y: 60.5}, {X: 3.5, Y: 61}}) || len(weir[1]) != 1 {
		t.Errorf("weir: %v, %v", weir, err)
	}
	if got, want := table.stages(), []stage{{"populate", 0}, {"start", 2.5}, {"floor", 4.5}}; !slices.Equal(got, want) {
		t.Errorf("stages: %v, want %v", got, want)
	}
	for _, column := range []string{"phase", "seconds", "none"} {
		if _, err := table.lines(column); err == nil {
			t.Errorf("column %q can be drawn", column)
		}
	}
}

func TestTablesThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                    "",
		"a head alone":             "seconds,phase,made\n",
		"two columns":              "seconds,phase\n1,a\n",
		"a time that is no number": "seconds,phase,made\nnow,a,1\n",
		"a row that is short":      "seconds,phase,made\n1,a\n",
	} {
		if _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
	table, err := read(strings.NewReader("seconds,phase,made\n1,a,many\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.lines("made"); err == nil {
		t.Error("a value that is no number is drawn")
	}
}

func TestChartIsSVGWithWhatIsNamed(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "table.csv"), filepath.Join(dir, "chart.svg")
	if err := os.WriteFile(from, []byte(sampled), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"--table=" + from, "--columns=made,weir", "--title=A title", "--unit=MB", "--out=" + to}); err != nil {
		t.Fatal(err)
	}
	drawing, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var root string
	var texts []string
	for d := xml.NewDecoder(bytes.NewReader(drawing)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = token.Name.Local
			}
		case xml.CharData:
			texts = append(texts, strings.TrimSpace(string(token)))
		}
	}
	for _, want := range []string{"A title", "MB", "seconds", "made", "weir", "populate", "start", "floor"} {
		if !slices.Contains(texts, want) {
			t.Errorf("nothing says %q among %q", want, texts)
		}
	}
	if root != "svg" {
		t.Errorf("the root is %s", root)
	}
	if err := run([]string{"--table=" + from, "--columns=none", "--out=" + to}); err == nil {
		t.Error("a column that is not there can be drawn")
	}
}

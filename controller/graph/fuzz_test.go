package graph_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzGraph verifies the same things as the random histories. What begins with "#!" is a script,
// and anything else the dice that make one up: so a corpus can be read, and mutations mean
// something.
func FuzzGraph(f *testing.F) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		f.Fatalf("no scripts to begin with: %v", err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(shebang + strings.Join(commands(string(text)), "\n")))
	}
	f.Add(bytes.Repeat([]byte{7, 0, 45, 99, 13, 255, 81, 30}, 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		var lines []string
		if text, ok := bytes.CutPrefix(data, []byte(shebang)); ok {
			lines = strings.Split(string(text), "\n")
			lines = lines[:min(len(lines), mostLines)]
		} else {
			lines = dictated(&tape{data})
		}
		if broken := play(lines); broken != "" {
			t.Fatal(report(broken, lines))
		}
	})
}

const (
	shebang   = "#!\n"
	mostLines = 200 // the model takes its time
)

// dictated are the lines that a tape of dice makes up.
func dictated(d *tape) []string {
	h := newHistory()
	w := author{dice: d, h: h}
	var lines []string
	for len(d.left) > 0 && len(lines) < mostLines && h.broken == "" {
		lines = append(lines, w.line(len(lines)))
		h.Run(lines[len(lines)-1]) //nolint:errcheck // a line that does not apply does nothing
	}
	return lines
}

// tape reads dice from bytes; at its end it shows zeros.
type tape struct{ left []byte }

func (t *tape) IntN(n int) int {
	if len(t.left) == 0 {
		return 0
	}
	b := t.left[0]
	t.left = t.left[1:]
	return int(b) % n
}

// commands reads a script as lines without answers, a list with its objects as one line each.
func commands(text string) (lines []string) {
	for block := range strings.SplitSeq(text, "\n\n") {
		var verb []string
		for line := range strings.SplitSeq(block, "\n") {
			if line == "----" {
				break
			}
			if line != "" && line[0] != '#' {
				verb = append(verb, line)
			}
		}
		if len(verb) == 1 {
			lines = append(lines, verb[0])
		}
		if len(verb) > 1 {
			kind := strings.TrimPrefix(verb[0], "list ")
			lines = append(lines, verb[0]+" begin")
			for _, object := range verb[1:] {
				lines = append(lines, "see "+kind+" "+object)
			}
			lines = append(lines, verb[0]+" end")
		}
	}
	return lines
}

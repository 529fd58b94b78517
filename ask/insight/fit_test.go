package insight

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestNothingIsLostInNarrowTerminals: whatever an answer says, and each script has many, it says in
// a terminal of 40 columns in the same words, and no line is wider but by a name, or a command,
// that is to stay in one piece.
func TestNothingIsLostInNarrowTerminals(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	broken := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole := string(data)
		for _, colour := range []bool{false, true} {
			if colour {
				whole = strings.ReplaceAll(whole, "\n! ", "\n\x1b[1;31m! ")
			}
			for _, width := range []int{1, 20, 40, 80} {
				fit := Style{Width: width}.Fit(whole)
				if was, is := strings.Fields(whole), strings.Fields(fit); !slices.Equal(was, is) {
					t.Errorf("%s in %d columns: %d words, was %d", file, width, len(is), len(was))
				}
				for line := range strings.Lines(fit) {
					line = strings.TrimSuffix(line, "\n")
					words := strings.Fields(line)
					if len(words) > 0 && isMarker(words[0]) {
						words = words[1:]
					}
					if columns(line) > width && len(words) > 1 && words[0] != copied {
						t.Errorf("%s in %d columns: %d: %q", file, width, columns(line), line)
					}
				}
				broken += strings.Count(fit, "\n") - strings.Count(whole, "\n")
			}
		}
		if fit := (Style{}).Fit(whole); fit != whole {
			t.Errorf("%s is another one where there is no terminal", file)
		}
	}
	if broken < 500 {
		t.Errorf("only %d lines were broken", broken)
	}
}

// TestPlansAndTreesAreOneScreenOfNarrowTerminals: what there is no room for is counted, and the
// summary is the last line.
func TestPlansAndTreesAreOneScreenOfNarrowTerminals(t *testing.T) {
	kind := "customresourcedefinitions.apiextensions.k8s.io"
	var items []*Item
	for n := range 60 {
		i := &Item{Object: Object{Kind: kind, Name: fmt.Sprintf("a-name-that-is-rather-long-%02d", n), UID: types.UID(fmt.Sprint(n))}, Outcome: Released,
			Why: fmt.Sprintf("owned by Deployment shop/api-%02d; not any more by Deployment shop/web", n)}
		items = append(items, i)
	}
	p := &Plan{Roots: []Object{items[0].Object}, Propagation: metav1.DeletePropagationBackground, Items: items}
	for _, width := range []int{0, 40} {
		var out strings.Builder
		if err := p.Draw(&out, Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) > mostLines+4 { // an empty line, and the summary, which may be more than one there
			t.Errorf("%d columns: %d lines\n%s", width, len(lines), &out)
		}
		told := strings.Count(out.String(), kind+"/")
		more := strings.Join(strings.Fields(out.String()), " ")
		if want := fmt.Sprintf("… %d lines more, with %d objects: --full shows them", 60-told, 60-told); !strings.Contains(more, want) {
			t.Errorf("%d columns: %d objects are told, and %q is not said in\n%s", width, told, want, &out)
		}
		if !strings.HasSuffix(more, "Plan: 60 are kept and lose a reference.") {
			t.Errorf("%d columns: the summary is not the last line of\n%s", width, &out)
		}
		out.Reset()
		var nodes []*Node
		for _, i := range items {
			nodes = append(nodes, &Node{Object: i.Object, Finalizers: []string{"example.com/a-finalizer-of-" + i.Name}})
		}
		if err := DrawTree(&out, nodes, Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n > mostLines || !strings.Contains(out.String(), "--full") {
			t.Errorf("a tree in %d columns: %d lines\n%s", width, n, &out)
		}
	}
}

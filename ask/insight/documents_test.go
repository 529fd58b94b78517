package insight

import (
	"flag"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
)

var picture = flag.String("picture", "", "a file for the plan of testdata/documents.txt as a terminal shows it, for make picture")

// pictured writes a plan in colours.
func pictured(t *testing.T, w *World, args []string) {
	var out strings.Builder
	out.WriteString("$ kubectl weir plan deployment web\n")
	if err := asks["plan"](w, args, Style{Colour: true}, &out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*picture, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestExamplesOfDocumentsAreAnswers: what docs/plan.svg and docs/asking.md show is what
// testdata/documents.txt prints.
func TestExamplesOfDocumentsAreAnswers(t *testing.T) {
	text := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	folded := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	printed := folded(text("testdata/documents.txt"))
	drawn := strings.ReplaceAll(text("../../docs/plan.svg"), "</text>", "\n")
	shown := map[string]string{"docs/plan.svg": html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(drawn, ""))}
	for _, command := range []string{"plan deployment web", "orphans"} {
		_, after, _ := strings.Cut(text("../../docs/asking.md"), "\n$ kubectl weir "+command+"\n")
		shown["docs/asking.md: "+command], _, _ = strings.Cut(after, "\n```")
	}
	for where, text := range shown {
		text = folded(text)
		text = strings.TrimPrefix(text, "$ kubectl weir plan deployment web ")
		if text == "" || !strings.Contains(printed, text) {
			t.Errorf("%s: testdata/documents.txt prints something else (for the picture: make picture):\n%s", where, text)
		}
	}
}

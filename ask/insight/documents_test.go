package insight

import (
	"os"
	"strings"
	"testing"
)

// TestExamplesOfDocumentsAreAnswers: what README.md and docs/asking.md show is what
// testdata/documents.txt prints, but for grace periods, which no script has.
func TestExamplesOfDocumentsAreAnswers(t *testing.T) {
	text := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	folded := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	printed, compared := folded(text("testdata/documents.txt")), 0
	for _, document := range []string{"../../README.md", "../../docs/asking.md"} {
		for _, command := range []string{"plan deployment web", "orphans"} {
			_, shown, found := strings.Cut(text(document), "\n$ kubectl weir "+command+"\n")
			if !found {
				continue
			}
			shown, _, _ = strings.Cut(shown, "\n```")
			shown = strings.ReplaceAll(shown, ": up to 30s to stop", "")
			if compared++; !strings.Contains(printed, folded(shown)) {
				t.Errorf("%s: testdata/documents.txt prints something else:\n%s", document, shown)
			}
		}
	}
	if compared != 3 {
		t.Errorf("%d examples were found, not 3", compared)
	}
}

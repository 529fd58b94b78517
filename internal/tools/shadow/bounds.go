package shadow

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-dev/weir/controller/words"
)

// Bounds, in bytes, of texts that users choose: a name in an owner reference may be as long as an
// object is large. As JSON each byte takes two at most, so that a report with all differences
// stays below report.Most.
const (
	mostObject = 512
	mostWhy    = 1024
	mostWhat   = 512 // of a kind that is not seen
)

// bounded returns text in one line, cut to most bytes. A long text is cut before it is made
// printable, which does not make it shorter.
func bounded(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > most+utf8.UTFMax {
		text = strings.ToValidUTF8(text[:most+utf8.UTFMax], "")
	}
	return words.Cut(words.Printable(text), most)
}

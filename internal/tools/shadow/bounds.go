package shadow

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-dev/weir/controller/words"
)

// How many bytes of a text are kept in which others have a say: a name in an owner reference may be
// as long as an object may be large. As JSON each byte is two at most, so that a report with all
// differences, and with all steps of each, has less than report.Most.
const (
	mostObject = 512
	mostWhy    = 1024
	mostWhat   = 512 // of a step, or of what is not seen
)

// bounded is a text in one line, or the beginning of it. What is too long is cut before it is made
// printable, which makes it no shorter.
func bounded(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) > most+utf8.UTFMax {
		text = strings.ToValidUTF8(text[:most+utf8.UTFMax], "")
	}
	return words.Cut(words.Printable(text), most)
}

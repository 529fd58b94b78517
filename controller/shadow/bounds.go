package shadow

import (
	"strings"

	"github.com/weir-dev/weir/controller/words"
)

// How many bytes of a text are kept in which others have a say: a name in an owner reference may be as long as an object may be large. As JSON
// each byte is two at most, so that a report with all differences, and with all steps of each, has less than report.Most.
const (
	mostObject = 512
	mostWhy    = 1024
	mostWhat   = 512 // of a step, or of what is not seen
)

// bounded is a text in one line, or the beginning of it.
func bounded(text string, most int) string {
	return words.Cut(words.Printable(strings.ToValidUTF8(text, "?")), most)
}

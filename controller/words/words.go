// Package words shows names and texts that others have chosen: on a screen, and in commands that
// people paste.
//
// The API server checks names of most kinds, but not those of RBAC objects, of owners in
// references, or messages of webhooks: they may hold line breaks, sequences that a terminal obeys
// (kubernetes/kubernetes#101695), and what a shell would run.
package words

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable is a text in one line in which nothing moves the cursor: what cannot be seen is written
// as Go writes it in a string.
func Printable(text string) string {
	if strings.IndexFunc(text, unseen) < 0 {
		return text
	}
	var b, quoted []byte
	for _, r := range text {
		if unseen(r) {
			quoted = strconv.AppendQuoteRuneToASCII(quoted[:0], r)
			b = append(b, quoted[1:len(quoted)-1]...)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

func unseen(r rune) bool { return !strconv.IsPrint(r) }

// Cut is a text, or its beginning where it has more bytes than most.
func Cut(text string, most int) string {
	const more = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// Count says how many there are of something: one is said of 1, and many of any other number.
func Count[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprint(n, " ", many)
}

var (
	// plain is a word that a shell leaves alone, and that is no flag, nor TYPE/NAME to kubectl.
	plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	// bare is one that may have slashes: the path of a file, an address.
	bare = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._:/-]*$`)
)

// Shell is a text as one word of a command, in one line: what cannot be seen is written as
// POSIX.1-2024 has it in $'…'. A shell that does not know that (dash) takes it as a word, too, of a
// name that nothing has: no quote stands in it that could end it.
func Shell(text string) string {
	switch {
	case bare.MatchString(text):
		return text
	case strings.IndexFunc(text, unseen) < 0:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case unseen(r), r == '\'', r == '\\':
			for _, octet := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, octet)
			}
		default:
			b.WriteRune(r)
		}
	}
	return "$'" + b.String() + "'"
}

// Object is how kubectl takes the object of a kind, in a command: TYPE NAME, or both in one word
// where the name could be taken for something else.
func Object(kind, name string) string {
	if plain.MatchString(name) {
		return kind + " " + name
	}
	return Shell(kind + "/" + name)
}

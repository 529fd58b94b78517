// Package words makes names and texts that users and webhooks have chosen safe to print, and to
// paste in commands.
//
// The API server checks names of most kinds, but not those of RBAC objects, of owners in
// references, or messages of webhooks: they may hold line breaks, sequences that a terminal obeys
// (kubernetes/kubernetes#101695), and what a shell would run.
package words

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable returns a text in one line in which nothing moves the cursor. Characters that cannot be
// seen are escaped as in a Go string.
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

// Cut returns a text, or its beginning if it has more bytes than most.
func Cut(text string, most int) string {
	const more = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// Count returns a number with its noun: one for 1, and many for any other number.
func Count[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprint(n, " ", many)
}

// Kinds returns how many objects there are of each kind, those of which there are most first, and no
// more than ten of them.
func Kinds[K interface {
	comparable
	fmt.Stringer
}](counts map[K]int) string {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.String(), b.String()))
	})
	const most = 10
	var parts []string
	for _, k := range all[:min(len(all), most)] {
		parts = append(parts, fmt.Sprintf("%d %s", counts[k], k))
	}
	if more := len(all) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("objects of %d more kinds", more))
	}
	return strings.Join(parts, ", ")
}

var (
	// plain is a word that a shell does not change, and that is neither a flag nor TYPE/NAME to
	// kubectl.
	plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	// bare is such a word that may have slashes: a path, an address.
	bare = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._:/-]*$`)
)

// Shell returns a text as one word of a command, in one line. Characters that cannot be seen are
// escaped in $'…', as POSIX.1-2024 has it. A shell that does not know that (dash) takes it as one
// word, too, which is the name of nothing: it holds no quote that could end it.
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

// Object returns how a command of kubectl names an object: TYPE NAME, or TYPE/NAME if the name
// could be taken for something else.
func Object(kind, name string) string {
	if plain.MatchString(name) {
		return kind + " " + name
	}
	return Shell(kind + "/" + name)
}

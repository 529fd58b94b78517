package script

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// split cuts a line into words at spaces, except within parentheses.
func split(line string) []string {
	var words []string
	depth, start := 0, -1
	for i, r := range line {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if space := r == ' ' && depth <= 0; space && start >= 0 {
			words = append(words, line[start:i])
			start = -1
		} else if !space && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		words = append(words, line[start:])
	}
	return words
}

// escape writes any string as one word, readable where it can be.
func escape(s string) string { return escapeBut(s, "-_.~:@") }

// escapePath is for words in which a slash joins nothing: finalizers, reasons.
func escapePath(s string) string { return escapeBut(s, "-_.~:@/") }

func escapeBut(s, plain string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, width := utf8.DecodeRuneInString(s[i:])
		switch plain := unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(plain, r); {
		case r == utf8.RuneError || !plain:
			for _, c := range []byte(s[i : i+width]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		default:
			b.WriteRune(r)
		}
		i += width
	}
	return b.String()
}

// escapeDots is for words that are joined by dots.
func escapeDots(s string) string { return strings.ReplaceAll(escape(s), ".", "%2E") }

func unescape(s string) (string, error) {
	u, err := url.PathUnescape(s)
	if err != nil {
		return "", fmt.Errorf("word %q: %w", s, err)
	}
	return u, nil
}

// list takes "(a, b)" or "a" apart.
func list(s string) []string {
	if inner, ok := strings.CutPrefix(s, "("); ok {
		s = strings.TrimSuffix(inner, ")")
	}
	var words []string
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// args are the words after the verb: those with a key, and the others in order.
type args struct {
	words []string
	named map[string]string
}

// newArgs sorts the words; a name that the verb does not know is an error, not a word.
func newArgs(words []string, known ...string) (args, error) {
	a := args{named: map[string]string{}}
	for _, w := range words {
		key, value, named := strings.Cut(w, "=")
		if !named {
			a.words = append(a.words, w)
			continue
		}
		ok := false
		for _, k := range known {
			ok = ok || k == key
		}
		if !ok {
			return a, fmt.Errorf("unknown argument %q", key)
		}
		if _, twice := a.named[key]; twice {
			return a, fmt.Errorf("argument %q is given twice", key)
		}
		a.named[key] = value
	}
	return a, nil
}

// take removes a word and tells whether it was there.
func (a *args) take(word string) bool {
	for i, w := range a.words {
		if w == word {
			a.words = append(a.words[:i:i], a.words[i+1:]...)
			return true
		}
	}
	return false
}

// exactly returns n unescaped words.
func (a *args) exactly(n int) ([]string, error) {
	if len(a.words) != n {
		return nil, fmt.Errorf("%d words wanted, got %q", n, a.words)
	}
	out := make([]string, n)
	for i, w := range a.words {
		var err error
		if out[i], err = unescape(w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

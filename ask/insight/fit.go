package insight

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// marker is how long the word at the beginning of a line may be that is a symbol or a number:
	// what goes on below stands behind it.
	marker = 3
	// copied is the word from which on a line is a command, to be copied as one line.
	copied = "kubectl"
)

// Fit breaks the lines of a text that are wider than the terminal, between words: none is left out,
// and none is broken. A name that is wider than the terminal, and a command, stay as they are, on
// lines of their own: the terminal breaks them where they can still be copied. Each letter counts
// as one column.
func (s Style) Fit(text string) string {
	if s.Width <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		b.WriteString(strings.Join(s.broken(line), "\n"))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// rows is how many lines of the terminal a line takes, as far as its words can be broken.
func (s Style) rows(line string) int {
	if s.Width <= 0 {
		return 1
	}
	return len(s.broken(line))
}

// broken are the lines that one becomes.
func (s Style) broken(line string) (out []string) {
	bare := strings.TrimLeft(line, " ")
	lead := min(len(line)-len(bare), s.Width/2) // however deep it is, there is room for what it says
	line = strings.Repeat(" ", lead) + bare
	if columns(line) <= s.Width {
		return []string{line}
	}
	words := strings.Split(bare, " ")
	hang := 2
	if isMarker(words[0]) {
		hang = columns(words[0]) + 1
	}
	now, first := strings.Repeat(" ", lead), true // first: a line has one word at least, besides its marker
	for n, word := range words {
		if word == copied {
			word = strings.Join(words[n:], " ")
		}
		switch {
		case n == 0:
			now += word
			first = isMarker(word)
		case first || columns(now)+1+columns(word) <= s.Width:
			now += " " + word
			first = first && word == ""
		case word == "": // two spaces where a line ends
		default:
			out = append(out, now)
			now = strings.Repeat(" ", lead+hang) + word
		}
		if words[n] == copied {
			break
		}
	}
	return append(out, now)
}

// isMarker tells whether a word is a symbol or a number, and no word.
func isMarker(word string) bool {
	word = colourless(word)
	return utf8.RuneCountInString(word) <= marker && !strings.ContainsFunc(word, unicode.IsLetter)
}

// columns is how many a text takes: colours take none.
func columns(text string) int { return utf8.RuneCountInString(colourless(text)) }

// colourless is a text without the sequences that colour it.
func colourless(text string) string {
	for {
		at := strings.Index(text, "\x1b[")
		if at < 0 {
			return text
		}
		end := strings.IndexByte(text[at:], 'm')
		if end < 0 {
			return text
		}
		text = text[:at] + text[at+end+1:]
	}
}

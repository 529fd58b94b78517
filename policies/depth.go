package policies

import "bytes"

// MostDepth bounds the nesting of an object's JSON, in levels. It is the bound of the API server's
// own decoder, so no stored object is refused for it.
const MostDepth = 10_000

// TooDeep reports whether a text is nested more than most levels deep. Code that recurses into JSON
// must ask this first: a stack overflow ends the process, and nothing can recover from it. The text
// need not be valid JSON.
//
// Most texts have fewer brackets, and counting them is many times faster than looking at each byte.
func TooDeep(text []byte, most int) bool {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) <= most {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // an escaped character ends no string
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

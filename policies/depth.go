package policies

import "bytes"

// MostDepth is how deeply the JSON of an object may be nested, in levels: as deeply as the API
// server's own decoder lets it be, so no object that is stored is refused for it.
const MostDepth = 10_000

// TooDeep tells whether JSON is nested more deeply than so many levels. Whatever recurses into JSON
// must ask this first: a stack that overflows ends the process, and nothing can recover from that.
// It need not be JSON.
//
// Most texts do not have as many brackets, and to count them all is many times faster than to look
// at each byte.
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
			i++ // whatever is escaped ends no string
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

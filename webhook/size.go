package webhook

import "bytes"

// What JSON takes of memory when it is decoded, in bytes, at most: an object is a map that has room
// for eight fields from its first on, and whatever stands in a list or an object has a place in it.
const (
	objectSize = 360
	itemSize   = 90
)

// decodes is how often: metadata, and all of an object for conditions that look at more.
const decodes = 2

// sure is what nothing has to be looked at more closely for.
const sure = 1 << 20

// decodedSize is how many bytes a review takes when it is decoded, at most. Nearly all are small,
// and what is in their strings does not matter; of others it is looked which brackets are in
// strings, or a text full of them would count as what it is not.
func decodedSize(body []byte) int64 {
	size := decoded(len(body), bytes.Count(body, []byte("{")), bytes.Count(body, []byte("["))+bytes.Count(body, []byte(",")))
	if size <= sure {
		return size
	}
	objects, items, inString := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++ // whatever is escaped ends no string
		case inString:
		case c == '{' && (i+1 == len(body) || body[i+1] != '}'): // an empty one takes no more than an item
			objects++
		case c == '[' || c == ',' || c == '{':
			items++
		}
	}
	return decoded(len(body), objects, items)
}

func decoded(size, objects, items int) int64 {
	return decodes * (int64(size) + objectSize*int64(objects) + itemSize*int64(items))
}

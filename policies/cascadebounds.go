package policies

// Bounds are how much is read of a Lookup: object by object while there are few, and in pages of a
// list when there are more. Who makes the objects decides how many there are, so what is past them
// is refused (TooMany). A plan has the same, so that it says what the webhook would.
type Bounds struct {
	Single int   // objects that are read one by one
	Page   int64 // objects in a page
	Pages  int
}

// Most is how many objects of a list are read.
func (b Bounds) Most() int { return int(b.Page) * b.Pages }

// BoundsOf are those of Lookups. A condition that looks further than metadata needs the whole of an
// object, of which few fit into memory at once.
func BoundsOf(full bool) Bounds {
	if full {
		return Bounds{Single: 64, Page: 20, Pages: 20}
	}
	return Bounds{Single: 256, Page: 50, Pages: 80}
}

// Single tells whether the objects of a Lookup are read one by one, and not in a list of all that
// its selector selects in its namespace.
func (l *Lookup) Single() bool { return l.Objects != nil && len(l.Objects) <= BoundsOf(l.Full).Single }

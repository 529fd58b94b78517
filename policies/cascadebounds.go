package policies

// Bounds are how much of a Lookup is read: single objects while there are few, and pages of a list
// when there are more. Users decide how many objects there are, so what is past the bounds is
// refused (TooMany). A plan has the same bounds, so that it reports what the webhook would decide.
type Bounds struct {
	Single int   // objects that are read one by one
	Page   int64 // objects in a page
	Pages  int
}

// Most returns how many objects of a list are read.
func (b Bounds) Most() int { return int(b.Page) * b.Pages }

// BoundsOf returns the bounds of a Lookup. A condition that looks beyond metadata needs whole
// objects, of which few fit into memory at once.
func BoundsOf(full bool) Bounds {
	if full {
		return Bounds{Single: 64, Page: 20, Pages: 20}
	}
	return Bounds{Single: 256, Page: 50, Pages: 80}
}

// Single reports whether the objects of a Lookup are read one by one, and not in a list of all that
// its selector selects in its namespace.
func (l *Lookup) Single() bool { return l.Objects != nil && len(l.Objects) <= BoundsOf(l.Full).Single }

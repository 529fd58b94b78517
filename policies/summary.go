package policies

import "fmt"

// Summary returns a sentence about what a DELETE would also delete, for a user who only tries it,
// or may not do it; "" if that is nothing, or not known. It has no names: the user may not be
// allowed to see them.
func (s *Set) Summary(q Question) string {
	if q.Operation != Delete || q.Subresource != "" || object(q.OldObject).terminating() {
		return ""
	}
	w := s.propagationOf(&q, s.askDeletions(&q, &verdict{set: s, q: &q}))
	also, unknown := alsoDeleted(&q, w, 0)
	if also.Total() == 0 {
		return ""
	}
	atLeast := ""
	if unknown != nil {
		atLeast = "at least "
	}
	counts := also.largest()
	for i := range counts {
		counts[i].Names = nil
	}
	verb := "are"
	if also.Total() == 1 {
		verb = "is"
	}
	return fmt.Sprintf("if %s is deleted, %s%s %s also deleted: %s", q.what(), atLeast, objects(also.Total()), verb,
		AlsoDeleted{Kinds: counts})
}

package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The user of a refused delete may have no right to see what would be deleted with it. All users
// are told how many objects of which kinds would be: without that they could not decide what to do.
// Names are told to users who may list them.

// named returns what a user may be told: the names of those of its largest kinds that the user may
// list. A permission that is not known yet is noted, and until it is, no names are told.
func (v *verdict) named(q *Question, f AlsoDeleted) AlsoDeleted {
	out := AlsoDeleted{Kinds: f.largest()}
	for i := range out.Kinds {
		k := &out.Kinds[i]
		if i >= mostKinds {
			k.Names = nil
		}
		k.Names = slices.DeleteFunc(slices.Clone(k.Names), func(name string) bool {
			return !v.mayList(q, schema.ParseGroupResource(k.Resource), name)
		})
	}
	return out
}

// mayList reports whether the user of a request may list an object that would also be deleted: in
// the namespace in its name, or in that of the request's object, or everywhere if that is in none.
func (v *verdict) mayList(q *Question, gr schema.GroupResource, name string) bool {
	a := Access{Verb: "list", Group: gr.Group, Resource: gr.Resource, Namespace: q.Namespace}
	if q.isNamespace() {
		a.Namespace = q.name()
	}
	if namespace, _, elsewhere := strings.Cut(name, "/"); elsewhere && a.Namespace != "" {
		a.Namespace = namespace
	}
	may, known := q.Answers[a]
	if !known && !slices.Contains(v.discloses, a) {
		v.discloses = append(v.discloses, a)
	}
	return bool(may)
}

// largest returns the kinds, largest first.
func (f AlsoDeleted) largest() []KindCount {
	all := slices.Clone(f.Kinds)
	slices.SortFunc(all, func(a, b KindCount) int {
		return cmp.Or(b.Count-a.Count, compare(a.Resource, b.Resource))
	})
	return all
}

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

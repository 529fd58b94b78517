package policies

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a refusal tells is told to whoever asked for the delete, who may be no one to see what would
// be deleted with it. How many objects of which kinds do is told to all: without that no user could
// decide what to do. Their names are told to who may list them.

// named is what a user may be told of it: the names of those of its largest kinds that the user may
// list. What is not known yet is noted; while it is not, no names are told.
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

// mayList tells whether the user of a request may list what would also be deleted: in the namespace
// that its name says, or where the object is, or, of one that is in no namespace, everywhere.
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

// largest are the kinds, those first of which most would also be deleted.
func (f AlsoDeleted) largest() []KindCount {
	all := slices.Clone(f.Kinds)
	slices.SortFunc(all, func(a, b KindCount) int {
		return cmp.Or(b.Count-a.Count, compare(a.Resource, b.Resource))
	})
	return all
}

package policies

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An edit of owner references deletes the object where it leaves it without an owner that is there: the garbage collector
// does that, who is not judged. An owner that is there may be deleted, which is judged by what it takes with it. So a
// reference that is added has to be to an object that is there, exactly as the reference says, that is not being deleted, and
// about whose delete Weir is asked. Where references are taken away, one of those that stay has to be.
//
// What owns such an owner can go without a question, too: it may be a Lease, or is being deleted already. The collector then
// deletes one after the other. So each owner of an owner has to be there in the same way, and each of theirs.

// judgeOwners finds what is wrong with owners without looking, and which have to be looked at.
func (c *Cascade) judgeOwners() {
	if len(c.check) > mostOwners {
		c.wrong = append(c.wrong, fmt.Sprintf("%d owners would have to be looked up, and at most %d are for one request", len(c.check), mostOwners))
		c.doomed = true
		return
	}
	namespace := ""
	if c.q.namespaced() {
		namespace = c.q.Namespace
	}
	for _, r := range c.check {
		if lookup, ok := c.require(r, namespace, says(r)); ok {
			c.named[r] = lookup
		}
	}
}

// require has an owner read that has to be there, once. False: it is none, and what is wrong with it is said.
func (c *Cascade) require(r OwnerRef, namespace, what string) (lookup OwnerLookup, ok bool) {
	lookup, why := c.owner(r, namespace)
	_, already := c.called[lookup]
	switch {
	case why != "":
	case already:
		return lookup, true
	case len(c.read) == mostOwners:
		why = fmt.Sprintf(" would have to be looked up, and at most %d owners are for one request", mostOwners)
	default:
		c.called[lookup] = what
		c.read = append(c.read, lookup)
		return lookup, true
	}
	c.wrong = append(c.wrong, what+why)
	return lookup, false
}

// owner says where an owner of an object in a namespace is, or why it is none; the namespace is empty for an object in none.
func (c *Cascade) owner(r OwnerRef, namespace string) (lookup OwnerLookup, why string) {
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	kind := Kind{}
	if c.q.Facts.Kind != nil {
		kind = c.q.Facts.Kind(gvk)
	}
	gone := c.q.Facts.Owner != nil && c.q.Facts.Owner(r, namespace).Presence == Absent
	switch {
	case !kind.Known:
		return lookup, " is of a kind of which nothing is known yet"
	case !kind.Served || len(kind.Resources) != 1:
		return lookup, " is of a kind that is not served"
	case kind.Namespaced && namespace == "":
		return lookup, " is in a namespace, and it is not"
	case wildcardLeavesOut(kind.Resources[0].Group, kind.Resources[0].Resource):
		return lookup, " is of a kind about whose deletes no policy is asked"
	case gone || len(content.IsPathSegmentName(r.Name)) > 0:
		return lookup, " does not exist"
	}
	return lookupOf(r, kind, namespace), ""
}

func says(r OwnerRef) string {
	return fmt.Sprintf("the owner %s (%s, uid %s)", r, r.APIVersion, r.UID)
}

// Owners are to be read, one after the other: to tell of one may add its own owners.
func (c *Cascade) Owners() iter.Seq[OwnerLookup] {
	return func(yield func(OwnerLookup) bool) {
		for i := 0; i < len(c.read); i++ { // it grows
			if !yield(c.read[i]) {
				return
			}
		}
	}
}

// Owner says what was read: nil where there is none, or why it could not be.
func (c *Cascade) Owner(l OwnerLookup, obj map[string]any, err error) {
	o := object(obj)
	switch what := c.called[l]; {
	case err != nil:
		c.wrong = append(c.wrong, fmt.Sprintf("%s cannot be read: %s", what, oneLine(err.Error())))
	case obj == nil || o.uid() != l.Ref.UID:
		c.wrong = append(c.wrong, what+" does not exist")
	case o.terminating():
		c.wrong = append(c.wrong, what+" is being deleted")
	default:
		c.there[l] = c.ownersOf(l, o)
	}
}

// ownersOf has the owners of an owner read. False: one of them is none.
func (c *Cascade) ownersOf(l OwnerLookup, o object) bool {
	if n := len(o.ownerRefs()); n > mostOwners { // to tell them apart takes a step for each two
		c.wrong = append(c.wrong, fmt.Sprintf("%s has %d owners, and at most %d are looked up for one request", c.called[l], n, mostOwners))
		return false
	}
	all := true
	for _, r := range identities(o) {
		lookup, ok := c.require(r, l.Namespace, says(r)+" of "+l.Ref.String())
		all = all && ok
		c.above[l] = append(c.above[l], lookup)
	}
	return all
}

// stands tells whether an owner is there, and all that it depends on. Those that depend on each other keep each other.
func (c *Cascade) stands(l OwnerLookup, seen map[OwnerLookup]bool) bool {
	if seen[l] {
		return true
	}
	seen[l] = true
	return c.there[l] && !slices.ContainsFunc(c.above[l], func(o OwnerLookup) bool { return !c.stands(o, seen) })
}

// isDoomed tells whether the edit leaves the object without an owner, or with one that could not be verified. One that was
// there before and is gone is no user's fault, as long as another is there.
func (c *Cascade) isDoomed() bool {
	if c.doomed {
		return true
	}
	was := identities(object(c.q.OldObject))
	some := false
	for _, r := range c.check {
		lookup, ok := c.named[r]
		ok = ok && c.stands(lookup, map[OwnerLookup]bool{})
		if !ok && !slices.Contains(was, r) {
			return true
		}
		some = some || ok
	}
	return c.taken && !some
}

// doom says why, with the first owners.
func (c *Cascade) doom() string {
	return "of " + c.q.what() + " " + strings.Join(c.wrong[:min(len(c.wrong), mostNames)], ", and ") + ", so the garbage collector may delete it"
}

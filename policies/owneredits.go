package policies

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An edit of owner references deletes the object where it leaves it without an owner that is there: the garbage collector
// does that, who is not judged. An owner that is there may be deleted, which is judged by what it takes with it. So a
// reference that is added has to be to an object that is there, exactly as the reference says, that is not being deleted, and
// about whose delete Weir is asked. Where references are taken away, one of those that stay has to be.

// judgeOwners finds what is wrong with owners without looking, and which have to be looked at.
func (c *Cascade) judgeOwners() {
	if len(c.check) > mostOwners {
		c.wrong = append(c.wrong, fmt.Sprintf("%d owners would have to be looked up, and at most %d are for one request", len(c.check), mostOwners))
		c.doomed = true
		return
	}
	for _, r := range c.check {
		lookup, why := c.owner(r)
		if why != "" {
			c.wrong = append(c.wrong, says(r)+why)
			continue
		}
		c.read = append(c.read, lookup)
	}
}

// owner says where an owner is, or why it is none.
func (c *Cascade) owner(r OwnerRef) (lookup OwnerLookup, why string) {
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	kind := Kind{}
	if c.q.Facts.Kind != nil {
		kind = c.q.Facts.Kind(gvk)
	}
	gone := c.q.Facts.Owner != nil && c.q.Facts.Owner(r, c.q.Namespace).Presence == Absent
	switch {
	case !kind.Known:
		return lookup, " is of a kind of which nothing is known yet"
	case !kind.Served || len(kind.Resources) != 1:
		return lookup, " is of a kind that is not served"
	case kind.Namespaced && !c.q.namespaced():
		return lookup, " is in a namespace, and it is not"
	case wildcardLeavesOut(kind.Resources[0].Group, kind.Resources[0].Resource):
		return lookup, " is of a kind about whose deletes no policy is asked"
	case gone || len(content.IsPathSegmentName(r.Name)) > 0:
		return lookup, " does not exist"
	}
	return lookupOf(r, kind, c.q.Namespace), ""
}

func says(r OwnerRef) string {
	return fmt.Sprintf("the owner %s (%s, uid %s)", r, r.APIVersion, r.UID)
}

// Owners are to be read.
func (c *Cascade) Owners() []OwnerLookup { return c.read }

// Owner says what was read: nil where there is none, or why it could not be.
func (c *Cascade) Owner(l OwnerLookup, obj map[string]any, err error) {
	o := object(obj)
	switch {
	case err != nil:
		c.wrong = append(c.wrong, fmt.Sprintf("%s cannot be read: %s", says(l.Ref), oneLine(err.Error())))
	case obj == nil || o.uid() != l.Ref.UID:
		c.wrong = append(c.wrong, says(l.Ref)+" does not exist")
	case o.terminating():
		c.wrong = append(c.wrong, says(l.Ref)+" is being deleted")
	default:
		c.there[l.Ref] = true
	}
}

// isDoomed tells whether the edit leaves the object without an owner, or with one that could not be verified. One that was
// there before and is gone is no user's fault, as long as another is there.
func (c *Cascade) isDoomed() bool {
	was := identities(object(c.q.OldObject))
	added := slices.ContainsFunc(c.check, func(r OwnerRef) bool { return !c.there[r] && !slices.Contains(was, r) })
	return c.doomed || added || c.taken && len(c.there) == 0
}

// doom says why, with the first owners.
func (c *Cascade) doom() string {
	return "of " + c.q.what() + " " + strings.Join(c.wrong[:min(len(c.wrong), mostNames)], ", and ") + ", so the garbage collector may delete it"
}

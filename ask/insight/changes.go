package insight

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Changes are in what a plan differs from an earlier one of the same deletes.
type Changes struct {
	// Roots are objects to be deleted that are gone, or others by now.
	Roots []RootChange `json:"roots,omitempty"`
	// Verdicts are what policies say otherwise about the deletes.
	Verdicts []VerdictChange `json:"verdicts,omitempty"`
	// Unread is what could not be read and was before, Read what could be and was not.
	Unread  []Unread `json:"unread,omitempty"`
	Read    []Unread `json:"read,omitempty"`
	Objects []Change `json:"changes"`
}

// RootChange is an object that is gone, or that is another one of its name by now.
type RootChange struct {
	Object
	Now types.UID `json:"now,omitempty"` // the uid of the one that is there; empty: there is none
}

// VerdictChange is what policies said about a delete, and say now. nil: there were none to be
// asked; and now, they could not be read.
type VerdictChange struct {
	Object Object   `json:"object"`
	Was    *Verdict `json:"was,omitempty"`
	Is     *Verdict `json:"is,omitempty"`
}

// Change is in what a plan differs from an earlier one about an object.
type Change struct {
	Object
	// Was and Is are the outcomes; empty where the object is not in the plan.
	Was Outcome `json:"was,omitempty"`
	Is  Outcome `json:"is,omitempty"`
	// Unread says that it is not in the plan because its kind could not be read: nothing is known
	// of it.
	Unread bool `json:"unread,omitempty"`
	// Differs says in words what else has changed where the outcomes are the same.
	Differs []string `json:"differs,omitempty"`
}

// deletionPolicies is the kind of policies that refuse deletes.
const deletionPolicies = "deletionpolicies.weir.dev"

// Any tells whether there are any.
func (c *Changes) Any() bool {
	return len(c.Roots)+len(c.Verdicts)+len(c.Unread)+len(c.Read)+len(c.Objects) > 0
}

// ChangesSince are all of them, sorted.
func (p *Plan) ChangesSince(earlier *Plan) *Changes {
	c := &Changes{Unread: notAmong(p.Unread, earlier.Unread), Objects: []Change{}}
	if p.Held != "" || len(p.Roots) > 0 { // where all roots are gone, nothing was read
		c.Read = notAmong(earlier.Unread, p.Unread)
	}
	c.Verdicts = verdictChanges(earlier.Verdicts, p)
	if p.Held == "" { // what is held comes and goes
		c.Roots = rootChanges(earlier.Roots, p.Roots)
	}
	told := map[types.UID]bool{}
	for _, r := range c.Roots {
		told[r.UID], told[r.Now] = true, true
	}
	was := byUID(earlier.Items)
	rank, rankBefore := ranks(p.Items, was), ranks(earlier.Items, byUID(p.Items))
	for _, i := range p.Items {
		before := was[i.UID]
		delete(was, i.UID)
		switch {
		case told[i.UID]:
		case before == nil:
			c.Objects = append(c.Objects, Change{Object: i.Object, Is: i.Outcome})
		case before.Outcome != i.Outcome:
			c.Objects = append(c.Objects, Change{Object: i.Object, Was: before.Outcome, Is: i.Outcome})
		default:
			if differs := i.differs(before, rank[i.UID], rankBefore[i.UID]); len(differs) > 0 {
				c.Objects = append(c.Objects, Change{Object: i.Object, Was: i.Outcome, Is: i.Outcome, Differs: differs})
			}
		}
	}
	for _, i := range was {
		if !told[i.UID] {
			c.Objects = append(c.Objects, Change{Object: i.Object, Was: i.Outcome, Unread: unreadKind(p.Unread, i.Kind)})
		}
	}
	slices.SortFunc(c.Objects, func(a, b Change) int { return compareObjects(a.Object, b.Object) })
	return c
}

func byUID(items []*Item) map[types.UID]*Item {
	out := make(map[types.UID]*Item, len(items))
	for _, i := range items {
		out[i.UID] = i
	}
	return out
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// rootChanges are the objects to be deleted that are not among those of now, or are with another
// uid.
func rootChanges(was, is []Object) (out []RootChange) {
	for _, r := range was {
		at := slices.IndexFunc(is, func(o Object) bool { return o.Kind == r.Kind && o.Namespace == r.Namespace && o.Name == r.Name })
		switch {
		case at < 0:
			out = append(out, RootChange{Object: r})
		case is[at].UID != r.UID:
			out = append(out, RootChange{r, is[at].UID})
		}
	}
	slices.SortFunc(out, func(a, b RootChange) int { return compareObjects(a.Object, b.Object) })
	return out
}

// verdictChanges are those in what matters to who deletes. A verdict without a word is none: so is
// one where there are no policies.
func verdictChanges(was []Verdict, now *Plan) (out []VerdictChange) {
	is, unread := now.Verdicts, unreadKind(now.Unread, deletionPolicies)
	name := func(o Object) Object { o.UID = ""; return o }
	byName := map[Object]*VerdictChange{}
	at := func(o Object) *VerdictChange {
		if byName[name(o)] == nil {
			byName[name(o)] = &VerdictChange{Object: o}
		}
		return byName[name(o)]
	}
	for i := range was {
		at(was[i].Object).Was = &was[i]
	}
	for i := range is {
		at(is[i].Object).Is = &is[i]
	}
	there := map[Object]bool{}
	for _, r := range now.Roots {
		there[name(r)] = true
		if c := byName[name(r)]; c != nil && c.Is == nil && !unread {
			c.Is = &Verdict{Object: r}
		}
	}
	for _, c := range byName {
		if there[name(c.Object)] && !c.Was.same(c.Is) {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b VerdictChange) int { return compareObjects(a.Object, b.Object) })
	return out
}

// same tells whether two verdicts say the same. How a delete is confirmed follows from the plan.
func (v *Verdict) same(other *Verdict) bool {
	none := &Verdict{}
	v, other = cmp.Or(v, none), cmp.Or(other, none)
	return v.Refused == other.Refused && v.Message == other.Message && v.Doubt == other.Doubt && slices.Equal(v.Warnings, other.Warnings)
}

func notAmong(all, others []Unread) (out []Unread) {
	for _, u := range all {
		if !slices.ContainsFunc(others, func(o Unread) bool { return o.Kind == u.Kind }) {
			out = append(out, u)
		}
	}
	return out
}

// unreadKind tells whether a kind is among those that could not be read, or its API group is.
func unreadKind(all []Unread, kind string) bool {
	return slices.ContainsFunc(all, func(u Unread) bool {
		gv, group := strings.CutPrefix(u.Kind, allOf)
		parsed, err := schema.ParseGroupVersion(gv)
		return u.Kind == kind || group && err == nil && parsed.Group == schema.ParseGroupResource(kind).Group
	})
}

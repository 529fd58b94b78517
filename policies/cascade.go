package policies

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Cascade is the search for protected objects in what a request lets the collectors delete: the DELETE of an object, which
// takes its dependents with it, or what is in a namespace, or the objects of a definition; or the UPDATE of an object's
// owner references, by which the garbage collector finds it without an owner.
//
// The graph says what would go, and whether any of it is of a kind that is protected. It has neither labels nor annotations,
// and a confirmation is an annotation: so those objects are read. The caller does that, and says what it read:
//
//	Owners, and Owner for each, which may add others
//	Lookups, and Saw for each object, or TooMany, or Unread
//	Decide, and once more with the answers to Decision.Discloses
type Cascade struct {
	set    *Set
	q      *Question
	way    propagation
	guards []*compiled // that may protect something here
	self   *Question   // of an UPDATE: the delete of its object, which the collector would ask for

	check  []OwnerRef                    // owners that have to be there
	named  map[OwnerRef]OwnerLookup      // where those of them are read that may be
	read   []OwnerLookup                 // these and, as they are read, their own owners, each once
	called map[OwnerLookup]string        // what those are called
	above  map[OwnerLookup][]OwnerLookup // their owners
	there  map[OwnerLookup]bool
	wrong  []string // what is wrong with owners, in order
	taken  bool     // references were taken away
	doomed bool     // the object would be deleted

	search Search
	catch  Catch

	v       verdict
	failed  map[PolicyKey]bool // policies that could not be judged
	overrun map[PolicyKey]bool // policies of which too much would have to be looked at
	losses  []*loss
	early   bool // there may be more losses: enough was found
}

// OwnerLookup is where an owner is read.
type OwnerLookup struct {
	Ref       OwnerRef
	Resource  schema.GroupVersionResource
	Namespace string
}

// lookupOf is where the owner of an object in a namespace is, if its kind has one resource.
func lookupOf(r OwnerRef, kind Kind, namespace string) OwnerLookup {
	lookup := OwnerLookup{Ref: r, Resource: kind.Resources[0].WithVersion(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Version)}
	if kind.Namespaced {
		lookup.Namespace = namespace
	}
	return lookup
}

// Answer is what was read there: nil where nothing is. An object with another uid is another object.
func (l OwnerLookup) Answer(obj map[string]any, err error) Owner {
	gvk := schema.FromAPIVersionAndKind(l.Ref.APIVersion, l.Ref.Kind)
	switch {
	case err != nil:
		return Owner{}
	case object(obj).uid() != l.Ref.UID:
		return Owner{Presence: Absent}
	}
	return Owner{Presence: Present, Kind: gvk.GroupKind(), Namespace: l.Namespace, Name: l.Ref.Name}
}

// mostOwners is how many owners are read for one request, the owners of owners with them: a user can write ten thousand references into an
// object.
const mostOwners = 64

// guards tells whether the policy protects in cascades, too.
func (c *compiled) guards() bool {
	p := c.deletion.protection
	if p == nil {
		return false
	}
	return p.InCascades == v1alpha1.InCascadesRefuse || p.InCascades == "" && p.Confirmation == v1alpha1.ConfirmationRequired
}

func guardsOf(list []*compiled) []*compiled {
	var out []*compiled
	for _, c := range list {
		if c.guards() {
			out = append(out, c)
		}
	}
	return out
}

// Cascade begins the search for a request; nil where there is nothing to look for.
func (s *Set) Cascade(q Question) *Cascade {
	c := &Cascade{set: s, q: &q, failed: map[PolicyKey]bool{}, overrun: map[PolicyKey]bool{}, v: verdict{set: s, q: &q}}
	if len(s.guards.all) == 0 || q.check() != nil || s.isSystem(q.User) || object(q.NamespaceObject).terminating() {
		return nil
	}
	c.guards = slices.DeleteFunc(slices.Clone(s.guards.all), func(p *compiled) bool { return !p.mayGuardIn(&q) })
	if len(c.guards) == 0 {
		return nil
	}
	switch {
	case q.Operation == Delete && q.Subresource == "":
		if object(q.OldObject).terminating() && !another(&q) || !c.begin() {
			return nil
		}
	case q.Operation == Update:
		if object(q.OldObject).terminating() || !c.beginEdit() {
			return nil
		}
	default:
		return nil
	}
	return c
}

// mayGuardIn tells whether a policy may be about what goes: all of that is in the namespace of the object, where it is in one.
func (c *compiled) mayGuardIn(q *Question) bool {
	if !c.judges() || c.namespaces == nil || !q.namespaced() || q.NamespaceObject == nil {
		return c.judges()
	}
	return c.namespaces.Matches(object(q.NamespaceObject).labels())
}

// begin looks for what goes with an object. False: nothing does.
func (c *Cascade) begin() bool {
	c.way = c.set.propagationOf(c.q, c.set.askDeletions(c.q, &verdict{set: c.set, q: c.q})) // what fails is told by whom it is about
	if c.way.policy != v1alpha1.Orphan {
		c.search.UID, c.search.Kept = c.q.judged().uid(), c.way.keeps
	}
	if err := c.holds(); err != nil {
		c.failAll(err)
		return true
	}
	if c.search.UID == "" && c.search.Namespace == "" && c.search.Instances.Empty() {
		return false
	}
	c.find()
	return c.catch.Count > 0 || len(c.v.errors) > 0
}

// holds has the search be about what goes with a Namespace, or with a definition, although nothing of it depends on that.
func (c *Cascade) holds() (err error) {
	switch {
	case c.q.isNamespace():
		c.search.Namespace = c.q.name()
	case c.q.isCRD():
		c.search.Instances, err = c.q.defines()
	}
	return err
}

// beginEdit looks at an edit of owner references. False: it takes no owner away and adds none, or nothing is protected.
func (c *Cascade) beginEdit() bool {
	was, is := identities(object(c.q.OldObject)), identities(object(c.q.Object))
	c.taken = slices.ContainsFunc(was, func(r OwnerRef) bool { return !slices.Contains(is, r) })
	c.check = slices.DeleteFunc(slices.Clone(is), func(r OwnerRef) bool { return slices.Contains(was, r) })
	if len(is) == 0 || len(c.check) == 0 && !c.taken {
		return false
	}
	if c.taken {
		c.check = is // one that stays has to be there
	}
	c.self = c.q.asDelete()
	c.self.OldObject, c.self.oldObject = c.q.OldObject, c.q.oldObject // as it is, not as the edit would have it
	c.self.Subresource, c.self.RequestSubresource = "", ""
	c.way = propagation{policy: v1alpha1.Background}
	c.search.UID = c.self.judged().uid()
	if err := c.holds(); err != nil {
		c.failAll(err)
	}
	c.find()
	if c.catch.Count == 0 && len(c.v.errors) == 0 && len(c.againstSelf(&verdict{set: c.set, q: c.q}, nil)) == 0 {
		return false
	}
	c.named, c.called = map[OwnerRef]OwnerLookup{}, map[OwnerLookup]string{}
	c.above, c.there = map[OwnerLookup][]OwnerLookup{}, map[OwnerLookup]bool{}
	c.judgeOwners()
	return true
}

// identities are the owner references without what does not say which owner is meant, each once.
func identities(o object) []OwnerRef {
	var out []OwnerRef
	for _, r := range o.ownerRefs() {
		r.Controller, r.Block = false, false
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// find asks the graph.
func (c *Cascade) find() {
	if c.q.Facts.Catch == nil {
		c.failAll(fmt.Errorf("what would be deleted with it is not known yet"))
		return
	}
	c.search.Wanted = func(gr schema.GroupResource) bool { return len(c.about(gr)) > 0 }
	c.catch = c.q.Facts.Catch(c.search)
	if !c.catch.Complete {
		c.failAll(fmt.Errorf("what would be deleted with it is not all known yet"))
	}
}

// about are the policies that may protect objects of a resource here.
func (c *Cascade) about(gr schema.GroupResource) []*compiled { return naming(c.guards, gr) }

func (c *Cascade) judged() string {
	if c.q.Operation == Delete {
		return "the delete of " + c.q.what()
	}
	return "the owner references of " + c.q.what()
}

func (c *Cascade) failAll(why error) {
	for _, p := range c.guards {
		c.fail(p, why)
	}
}

// fail records, once, that a policy could not be judged.
func (c *Cascade) fail(p *compiled, why error) {
	if !c.failed[p.key] {
		c.failed[p.key] = true
		c.v.fail(p, c.judged(), why)
	}
}

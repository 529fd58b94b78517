package policies

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// Cascade is the search for protected objects among those that the collectors would delete after a
// DELETE.
//
// The content of a namespace, and the objects of a definition, are refused at the root: a Namespace
// that terminates cannot be restored, and the objects of a definition are deleted without
// admission.
//
// At any other root the search is a courtesy: each protected object is judged at its own delete
// (Set.guard), whatever is found here. The user who deletes an owner is warned or refused if the
// answer is cheap; what is not known, or too much, passes. Of a cluster-scoped root nothing is
// looked at: any user who may edit an object can name it as the owner.
//
// The graph knows which objects would go, and which kinds are protected. It has neither labels nor
// annotations, and a confirmation is an annotation, so the objects are read. The caller reads them,
// and reports what it read:
//
//	Lookups, and Saw for each object, or TooMany, or Unread
//	Decide, and again with the answers to Decision.Discloses
type Cascade struct {
	set    *Set
	q      *Question
	way    propagation
	guards []*compiled // policies that may protect an object here

	holds Search   // the namespace whose content goes, or the kind whose objects all go
	kinds []Caught // the kinds of which holds has objects
	catch Catch    // otherwise, the dependents of the object

	v       verdict
	failed  map[PolicyKey]bool // policies that could not be judged
	overrun map[PolicyKey]bool // policies for which too many objects would have to be looked at
	losses  []*loss
	early   bool // enough was found, so there may be more losses
}

// guards reports whether the policy protects in cascades, too.
func (c *compiled) guards() bool {
	p := c.deletion.protection
	if !c.protectsFrom(v1beta1.ProtectDelete) || c.forSome() { // a collector does not say for whom it deletes
		return false
	}
	return p.InCascades == v1beta1.InCascadesRefuse
}

// Cascade begins the search for a request; nil if there is nothing to look for.
func (s *Set) Cascade(q Question) *Cascade {
	c := &Cascade{set: s, q: &q, failed: map[PolicyKey]bool{}, overrun: map[PolicyKey]bool{}, v: verdict{set: s, q: &q}}
	if len(s.guards) == 0 || q.check() != nil || q.Operation != Delete || q.Subresource != "" ||
		s.isSystem(q.User) && !c.binds() {
		return nil
	}
	if !c.binds() && !q.namespaced() || object(q.OldObject).terminating() || object(q.NamespaceObject).terminating() {
		return nil
	}
	c.guards = slices.DeleteFunc(slices.Clone(s.guards), func(p *compiled) bool { return !p.mayGuardIn(&q) })
	if len(c.guards) == 0 || !c.begin() {
		return nil
	}
	return c
}

// binds reports whether a finding refuses the request for certain: the objects' own deletes are not
// judged, or would be judged too late.
func (c *Cascade) binds() bool { return c.q.isNamespace() || c.q.isCRD() }

// mayGuardIn reports whether a policy may match objects that go. If the root is in a namespace, all
// of them are in it.
func (c *compiled) mayGuardIn(q *Question) bool {
	if !c.judges() || c.namespaces == nil || !q.namespaced() || q.NamespaceObject == nil {
		return c.judges()
	}
	return c.namespaces.Matches(object(q.NamespaceObject).labels())
}

// begin asks the graph which objects go. It returns false if none of them is protected.
func (c *Cascade) begin() bool {
	wanted := func(gr schema.GroupResource) bool { return len(c.about(gr)) > 0 }
	if c.binds() {
		if err := c.hold(wanted); err != nil {
			for _, p := range c.guards {
				c.fail(p, err)
			}
		}
		return len(c.kinds) > 0 || len(c.v.errors) > 0
	}
	ask := c.set.askDeletions(c.q, &verdict{set: c.set, q: c.q}) // its failures are reported with the root
	c.way = c.set.propagationOf(c.q, ask)
	if c.way.policy == v1beta1.Orphan || c.q.Facts.Catch == nil {
		return false
	}
	c.catch = c.q.Facts.Catch(c.q.judged().uid(), c.way.keeps, wanted)
	return len(c.catch.Objects) > 0 || !c.catch.Complete
}

// hold finds the kinds of which the namespace, or the definition, has objects.
func (c *Cascade) hold(wanted func(schema.GroupResource) bool) (err error) {
	if c.q.isNamespace() {
		c.holds.Namespace = c.q.name()
	} else if c.holds.Instances, err = c.q.defines(); err != nil {
		return err
	}
	if c.q.Facts.Holds == nil {
		return errors.New("what would be deleted with it is not known yet")
	}
	var complete bool
	if c.kinds, complete = c.q.Facts.Holds(c.holds, wanted); !complete {
		return errors.New("what would be deleted with it is not fully known yet")
	}
	return nil
}

// about returns the policies that may protect objects of a resource here.
func (c *Cascade) about(gr schema.GroupResource) []*compiled { return naming(c.guards, gr) }

// fail records, once, that a policy could not be judged. It refuses nothing if the objects' own
// deletes are judged.
func (c *Cascade) fail(p *compiled, why error) {
	switch {
	case c.failed[p.key]:
		return
	case c.binds():
		c.v.fail(p, "the delete of "+c.q.what(), why)
	default:
		c.v.errors = append(c.v.errors, PolicyError{Policy: p.key, Err: why.Error()})
	}
	c.failed[p.key] = true
}

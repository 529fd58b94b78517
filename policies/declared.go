package policies

import (
	"fmt"
	"slices"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// An object may declare how it is deleted, by an annotation, if a policy reads that. The annotation
// decides what becomes of the dependents, so changing it takes the right to delete the object.

// readsAnnotation reports whether objects of the policy may declare how they are deleted.
func (c *compiled) readsAnnotation() bool {
	p := c.deletion.propagation
	return p != nil && p.Annotation == v1beta1.AllowAnnotation
}

// declarable are the propagations that an object can declare.
var declarable = []v1beta1.PropagationPolicy{v1beta1.Background, v1beta1.Foreground, v1beta1.Orphan}

// declared returns the policy for one object: what the object declares is the default, and nothing
// else is allowed. An unknown word is in doubt, and keeps the dependents.
func (c *compiled) declared(o object) *compiled {
	if !c.readsAnnotation() {
		return c
	}
	p := *c.deletion.propagation
	p.Annotation = v1beta1.IgnoreAnnotation
	says := v1beta1.PropagationPolicy(o.annotation(v1beta1.PropagationAnnotation))
	if says != "" && !slices.Contains(declarable, says) {
		says = v1beta1.Orphan
	}
	if says != "" && c.deletion.allows(says) {
		p.Default, p.Allowed = says, []v1beta1.PropagationPolicy{says}
	}
	out, d := *c, *c.deletion
	d.propagation, d.declares, out.deletion = &p, says != "", &d
	return &out
}

// guardDeclared judges an UPDATE that changes what an object declares, also on a terminating
// object: the declaration counts until the deletion has been carried out.
func (s *Set) guardDeclared(q *Question, d *Decision, v *verdict) {
	gr := q.Resource.GroupResource()
	is := object(q.Object).annotation(v1beta1.PropagationAnnotation)
	changes := is != object(q.OldObject).annotation(v1beta1.PropagationAnnotation)
	if q.Operation != Update || !changes || s.isSystem(q.User) || !writesMetadata(gr, q.Subresource) {
		return
	}
	before := evaluate(q.deleting(q.OldObject, q.oldObject))
	after := evaluate(q.deleting(q.Object, q.object))
	j := ownerJudge{q: q, d: d, v: v, seen: map[Access]bool{}}
	for _, c := range naming(s.deletion, gr) {
		if !q.Part.has(c) || !c.readsAnnotation() {
			continue
		}
		about, err := c.matches(&before)
		if !about && err == nil {
			about, err = c.matches(&after)
		}
		switch {
		case err != nil:
			v.fail(c, "the update of "+q.what(), err)
		case !about:
		case is != "" && !slices.Contains(declarable, v1beta1.PropagationPolicy(is)):
			v.add(c, finding{code: 403,
				text: fmt.Sprintf("the annotation %s of %s may not be %q", v1beta1.PropagationAnnotation, q.what(), is),
				way:  "Set it to Background, Foreground or Orphan",
			}, c.actions)
		default:
			j.mayDelete(c, "the annotation "+v1beta1.PropagationAnnotation+" of "+q.what())
		}
	}
}

// declarationChanges is the CEL for an update that changes what an object declares.
var declarationChanges = annotationChanges(v1beta1.PropagationAnnotation)

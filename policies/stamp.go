package policies

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// decideWrite judges a CREATE or UPDATE: what it does to the finalizer, and the owner references it writes.
func (s *Set) decideWrite(q *Question, d *Decision) {
	var v verdict
	defer v.write(d)
	if s.exempt(q) != "" {
		return
	}
	if q.Asked == "" || q.Asked == WebhookStamp {
		s.decideStamp(q, d, &v)
	}
	if q.Asked == "" || q.Asked == WebhookClear || q.Asked == WebhookOwners {
		s.decideOwners(q, d, &v)
	}
}

// decideStamp puts the finalizer on an object whose deletion Weir has to carry out, and takes it off any other.
func (s *Set) decideStamp(q *Question, d *Decision, v *verdict) {
	if q.Subresource != "" {
		return
	}
	wants, errs := s.wantsStamp(q)
	v.errors = append(v.errors, errs...)
	has := object(q.Object).stamped()
	switch {
	case wants && !has:
		d.Stamp = PutStamp
		d.Patch = append(d.Patch, addFinalizer(object(q.Object)))
	case !wants && has && len(errs) == 0:
		// Only when every policy has been heard: without the finalizer a deletion would be carried out in another way.
		d.Stamp = TakeStamp
		d.Patch = append(d.Patch, removeFinalizer(object(q.Object)))
	}
}

// WantsStamp tells whether the object that a CREATE or UPDATE leaves behind is to carry Weir's finalizer; back-fill asks
// it of what exists, as of an UPDATE that changes nothing. With errors there are policies that could not be judged: what
// is not wanted then is not to be taken off either.
func (s *Set) WantsStamp(q Question) (bool, []PolicyError) {
	return s.wantsStamp(&q)
}

func (s *Set) wantsStamp(q *Question) (bool, []PolicyError) {
	var v verdict
	matched := s.matchingDeletions(q.asDelete(), &v)
	i := slices.IndexFunc(matched, (*compiled).propagates)
	return i >= 0 && matched[i].deletion.stamps(q.Resource.GroupResource()), v.errors
}

// stamps tells whether some delete of such an object would have to be carried out by Weir.
func (d *deletion) stamps(gr schema.GroupResource) bool {
	p := d.propagation
	switch {
	case p == nil:
		return false
	case len(p.Dependents) > 0, p.Default == v1alpha1.Foreground, p.Default == v1alpha1.Orphan:
		return true
	}
	return p.Default == v1alpha1.Background && d.strict && slices.Contains(orphanedByDefault, gr)
}

func addFinalizer(o object) PatchOperation {
	if o.at("metadata") == nil {
		return PatchOperation{Op: "add", Path: "/metadata", Value: map[string]any{"finalizers": []any{v1alpha1.Finalizer}}}
	}
	if list, ok := o.at("metadata", "finalizers").([]any); ok && len(list) > 0 {
		return PatchOperation{Op: "add", Path: "/metadata/finalizers/-", Value: v1alpha1.Finalizer}
	}
	return PatchOperation{Op: "add", Path: "/metadata/finalizers", Value: []any{v1alpha1.Finalizer}}
}

func removeFinalizer(o object) PatchOperation {
	i := slices.Index(o.finalizers(), v1alpha1.Finalizer)
	return PatchOperation{Op: "remove", Path: "/metadata/finalizers/" + strconv.Itoa(i)}
}

// Shaping is how the controller carries out the deletion of a stamped object.
type Shaping struct {
	Propagation v1alpha1.PropagationPolicy
	// By is the policy that says so; empty where none does any more.
	By         string
	dependents *v1alpha1.Propagation
	// Errors are policies that could not be judged. Where there are any the deletion may be meant to go another way.
	Errors []PolicyError
}

// Spares tells whether dependents of a resource are kept, and lose their reference to the owner.
func (s Shaping) Spares(gr schema.GroupResource) bool {
	return s.Propagation == v1alpha1.Orphan || sparedBy(s.dependents, gr)
}

// Shape says how the deletion of a terminating object is carried out. The question is that of its DELETE, with the
// object as it is now as OldObject, and nobody as User: what was asked is in its finalizers.
func (s *Set) Shape(q Question) Shaping {
	q.Operation, q.Object, q.Options = Delete, nil, nil
	var v verdict
	matched := s.matchingDeletions(&q, &v)
	out := Shaping{Propagation: finalizerAsks(q.judged()), Errors: v.errors}
	var by *compiled
	if i := slices.IndexFunc(matched, (*compiled).propagates); i >= 0 {
		by = matched[i]
		out.By, out.dependents = by.key.Name, by.deletion.propagation
	}
	if by != nil && by.deletion.strict && out.Propagation == v1alpha1.Orphan &&
		slices.Contains(orphanedByDefault, q.Resource.GroupResource()) {
		out.Propagation = "" // nobody can have asked for it
	}
	if out.Propagation == "" {
		out.Propagation = v1alpha1.Background
		if by != nil && by.deletion.propagation.Default != "" {
			out.Propagation = by.deletion.propagation.Default
		}
	}
	return out
}

package policies

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	m, errs := s.StampFor(*q)
	v.errors = append(v.errors, errs...)
	o := object(q.Object)
	switch {
	case len(m.missing(o)) > 0:
		d.Stamp = PutStamp
		d.Patch = append(d.Patch, addFinalizers(o, m.missing(o))...)
		if q.Operation == Update && !q.Now.IsZero() {
			d.Patch = append(d.Patch, addAnnotation(o, v1alpha1.ArmedAtAnnotation, ArmedAt(q.Now)))
		}
	case m.By == "" && o.stamped() && len(errs) == 0:
		// Only when every policy has been heard: without the finalizer a deletion would be carried out in another way.
		d.Stamp = TakeStamp
		d.Patch = append(d.Patch, removeFinalizers(o, Stamped(q.Resource.GroupResource(), o.finalizers()))...)
		if o.annotation(v1alpha1.ArmedAtAnnotation) != "" {
			d.Patch = append(d.Patch, PatchOperation{Op: "remove", Path: annotationPath(v1alpha1.ArmedAtAnnotation)})
		}
	}
}

// Mark is what an object is to carry so that its deletion can be carried out as a policy says.
type Mark struct {
	// By is the policy; empty for an object that is to carry nothing.
	By string
	// Finalizers are Weir's own, and foregroundDeletion where the API server would orphan the dependents when nothing is
	// asked for: the finalizer comes before that rule (RB 6.1), and an explicit request before both.
	Finalizers []string
}

func (m Mark) missing(o object) []string { return m.Missing(o.finalizers()) }

// Missing are the finalizers that an object with these does not carry yet. foregroundDeletion is left out where somebody
// has put orphan on: the API server does not accept both (RB 6.4).
func (m Mark) Missing(have []string) []string {
	return slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool {
		return slices.Contains(have, f) || f == metav1.FinalizerDeleteDependents && slices.Contains(have, metav1.FinalizerOrphanDependents)
	})
}

// Stamped are those of an object's finalizers that Weir has put there.
func Stamped(gr schema.GroupResource, finalizers []string) []string {
	if !slices.Contains(finalizers, v1alpha1.Finalizer) {
		return nil
	}
	out := []string{v1alpha1.Finalizer}
	if slices.Contains(orphanedByDefault, gr) && slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	return out
}

// StampFor says what the object that a CREATE or UPDATE leaves behind is to carry; back-fill asks it of what exists, as
// of an UPDATE that changes nothing. With errors there are policies that could not be judged, and might have their say: what
// is not wanted then is not to be taken off either.
func (s *Set) StampFor(q Question) (Mark, []PolicyError) {
	var v verdict
	by := s.propagating(&q, s.askDeletions(q.asDelete(), &v))
	if by == nil {
		return Mark{}, v.errors
	}
	return by.mark(q.Resource.GroupResource()), v.errors
}

func (c *compiled) mark(gr schema.GroupResource) Mark {
	if !c.deletion.stamps(gr) {
		return Mark{}
	}
	m := Mark{By: c.key.Name, Finalizers: []string{v1alpha1.Finalizer}}
	if slices.Contains(orphanedByDefault, gr) && c.deletion.propagation.Default != "" && c.deletion.propagation.Default != v1alpha1.Orphan {
		m.Finalizers = append(m.Finalizers, metav1.FinalizerDeleteDependents)
	}
	return m
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
	return p.Default == v1alpha1.Background && slices.Contains(orphanedByDefault, gr)
}

func addFinalizers(o object, names []string) []PatchOperation {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	if o.at("metadata") == nil {
		return []PatchOperation{{Op: "add", Path: "/metadata", Value: map[string]any{"finalizers": list}}}
	}
	if have, ok := o.at("metadata", "finalizers").([]any); !ok || len(have) == 0 {
		return []PatchOperation{{Op: "add", Path: "/metadata/finalizers", Value: list}}
	}
	var out []PatchOperation
	for _, n := range names {
		out = append(out, PatchOperation{Op: "add", Path: "/metadata/finalizers/-", Value: n})
	}
	return out
}

func addAnnotation(o object, key, value string) PatchOperation {
	if m, ok := o.at("metadata", "annotations").(map[string]any); !ok || len(m) == 0 {
		return PatchOperation{Op: "add", Path: "/metadata/annotations", Value: map[string]any{key: value}}
	}
	return PatchOperation{Op: "add", Path: annotationPath(key), Value: value}
}

// annotationPath is the JSON pointer to an annotation.
func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// ArmedAt is how the time of a stamp is written.
func ArmedAt(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ArmedSince is how long ago an object was stamped after it had been made; false if it never was. A time that cannot be
// read, or that is still to come, counts as now.
func ArmedSince(obj map[string]any, now time.Time) (time.Duration, bool) {
	text := object(obj).annotation(v1alpha1.ArmedAtAnnotation)
	if text == "" || !object(obj).stamped() {
		return 0, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, true
	}
	return max(0, now.Sub(at)), true
}

// removeFinalizers goes from the last to the first, so that the places of the others hold.
func removeFinalizers(o object, names []string) []PatchOperation {
	var out []PatchOperation
	for i, f := range slices.Backward(o.finalizers()) {
		if slices.Contains(names, f) {
			out = append(out, PatchOperation{Op: "remove", Path: "/metadata/finalizers/" + strconv.Itoa(i)})
		}
	}
	return out
}

// Shaping is how the controller carries out the deletion of a stamped object.
type Shaping struct {
	Propagation v1alpha1.PropagationPolicy
	// By is the policy that says so; empty where none does any more.
	By         string
	dependents *v1alpha1.Propagation
	// Errors are policies that could not be judged. Undecided are deletions that one of them, with failurePolicy Fail,
	// may want to go another way.
	Errors    []PolicyError
	Undecided bool
}

// SparesSome tells whether dependents of some resources are kept though others fall.
func (s Shaping) SparesSome() bool {
	return s.dependents != nil && slices.ContainsFunc(s.dependents.Dependents, func(r v1alpha1.DependentRule) bool {
		return r.Action == v1alpha1.OrphanDependent
	})
}

// Spares tells whether dependents of a resource are kept, and lose their reference to the owner.
func (s Shaping) Spares(gr schema.GroupResource) bool {
	return s.Propagation == v1alpha1.Orphan || sparedBy(s.dependents, gr)
}

// Shape says how the deletion of a terminating object is carried out. The question is that of its DELETE, with the
// object as it is now as OldObject, and nobody as User: what was asked is in its finalizers.
func (s *Set) Shape(q Question) Shaping {
	q.Operation, q.Object, q.object, q.Options = Delete, nil, nil, nil
	var v verdict
	by := s.propagating(&q, s.askDeletions(&q, &v))
	out := Shaping{Propagation: finalizerAsks(q.judged()), Errors: v.errors, Undecided: len(v.refused) > 0}
	if by != nil {
		out.By, out.dependents = by.key.Name, by.deletion.propagation
	}
	if out.Propagation == "" {
		out.Propagation = v1alpha1.Background
		if by != nil && by.deletion.propagation.Default != "" {
			out.Propagation = by.deletion.propagation.Default
		}
	}
	return out
}

package policies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// decideWrite judges a CREATE or UPDATE: what it does to the finalizer, whether it takes the object
// out of what protects it, and the owner references it writes.
func (s *Set) decideWrite(q *Question, d *Decision) {
	adds := q.Asked == "" || q.Asked == WebhookAddFinalizer
	v, warning := verdict{set: s, q: q}, ""
	defer func() {
		if v.write(d); warning != "" {
			d.Warnings = append(d.Warnings, warning)
		}
	}()
	if q.Asked == "" || q.Asked == WebhookSelection {
		s.guardDeclared(q, d, &v)
	}
	if adds && q.Operation == Update && object(q.OldObject).terminating() && !s.isSystem(q.User) {
		warning = keepFinalizer(q, d)
	}
	if s.exempt(q) {
		return
	}
	if adds {
		s.decideFinalizers(q, d, &v)
	}
	if q.Asked == "" || q.Asked == WebhookConfirm {
		warning = recordConfirmation(q, d)
	}
	if q.Asked == "" || q.Asked == WebhookSelection {
		s.guardSelection(q, &v)
	}
	if q.Asked == "" || q.Asked == WebhookClear || q.Asked == WebhookOwners {
		s.decideOwners(q, d, &v)
	}
}

// decideFinalizers adds the finalizer to an object whose deletion Weir has to carry out, and
// removes it from any other.
func (s *Set) decideFinalizers(q *Question, d *Decision, v *verdict) {
	if !writesMetadata(q.Resource.GroupResource(), q.Subresource) {
		return
	}
	m, errs := s.FinalizersFor(*q)
	v.errors = append(v.errors, errs...)
	o, old := object(q.Object), object(q.OldObject)
	if q.Subresource != "" && (m.By == "" || len(m.missing(old)) > 0) {
		return // such a write removes nothing; another write adds or removes the finalizer
	}
	switch {
	case len(m.missing(o)) > 0:
		d.Finalizers = AddFinalizers
		d.Patch = append(d.Patch, addFinalizers(o, m.missing(o))...)
		if q.Operation == Update && len(m.missing(old)) == 0 {
			// Not new: every DELETE under way has seen them.
			d.Patch = append(d.Patch, restoreArmedAt(o, old)...)
			return
		}
		if q.Operation == Update && !q.Now.IsZero() {
			d.Patch = append(d.Patch, addAnnotation(o, v1beta1.ArmedAtAnnotation, ArmedAt(q.Now)))
		}
	case m.By != "" && q.Operation == Update:
		d.Patch = append(d.Patch, restoreArmedAt(o, old)...)
	case m.By == "" && o.hasFinalizer() && len(errs) == 0:
		// Only if every policy was judged: without the finalizer a deletion would be carried out in
		// another way.
		d.Finalizers = RemoveFinalizers
		d.Patch = append(d.Patch, removeFinalizers(o, OwnFinalizers(q.Resource.GroupResource(), o.finalizers()))...)
		if o.annotation(v1beta1.ArmedAtAnnotation) != "" {
			d.Patch = append(d.Patch, PatchOperation{Op: "remove", Path: annotationPath(v1beta1.ArmedAtAnnotation)})
		}
	}
}

// keepFinalizer puts back Weir's finalizer that an UPDATE removes from a terminating object: the
// object would be gone before its deletion was carried out as policies say, or decided (RB 6.35).
// Other finalizers are left to their owners.
func keepFinalizer(q *Question, d *Decision) (warning string) {
	o, old := object(q.Object), object(q.OldObject)
	if !old.hasFinalizer() || o.hasFinalizer() || !writesMetadata(q.Resource.GroupResource(), q.Subresource) {
		return ""
	}
	d.Finalizers = AddFinalizers
	d.Patch = append(d.Patch, addFinalizers(o, []string{v1beta1.Finalizer})...)
	return "finalizer " + v1beta1.Finalizer + " stays until the deletion is carried out: " +
		"kubectl weir why says what it waits for. By force: kubectl delete validatingadmissionpolicybinding " +
		InProcessGuardName + ", then mutatingwebhookconfiguration " +
		WebhookConfigurations + ", and at once the finalizer"
}

// takesFinalizer is the CEL for an update that removes Weir's finalizer.
var takesFinalizer = carries("oldObject") + " && !(" + carries("object") + ")"

func carries(variable string) string {
	return has(variable, "finalizers") + " && " + celString(v1beta1.Finalizer) + " in " + variable + ".metadata.finalizers"
}

// restoreArmedAt puts back the time at which the finalizer was added. Only Weir writes it, by
// requests that are not judged. Otherwise a user who may edit an object could make all deletes of
// it wait, by writing a new time before the last is over.
func restoreArmedAt(o, old object) []PatchOperation {
	switch at := old.annotation(v1beta1.ArmedAtAnnotation); at {
	case o.annotation(v1beta1.ArmedAtAnnotation):
		return nil
	case "":
		return []PatchOperation{{Op: "remove", Path: annotationPath(v1beta1.ArmedAtAnnotation)}}
	default:
		return []PatchOperation{addAnnotation(o, v1beta1.ArmedAtAnnotation, at)}
	}
}

// armedAtChanges is the CEL for an update that changes that time.
var armedAtChanges = annotationChanges(v1beta1.ArmedAtAnnotation)

func annotationChanges(key string) string {
	return "(" + annotationOf("object", key) + ") != (" + annotationOf("oldObject", key) + ")"
}

func annotationOf(variable, key string) string {
	return fmt.Sprintf("has(%[1]s) && '%[2]s' in %[1]s ? %[1]s['%[2]s'] : ''", variable+".metadata.annotations", key)
}

// Wanted is what an object must carry so that its deletion can be carried out as a policy says.
type Wanted struct {
	// By is the policy; "" if the object is to carry nothing.
	By string
	// Finalizers are Weir's own, and foregroundDeletion if the API server would orphan the
	// dependents when no propagation is asked for: the finalizer takes precedence over that default
	// (RB 6.1), and an explicit request over both.
	Finalizers []string
}

func (m Wanted) missing(o object) []string { return m.Missing(o.finalizers()) }

// Missing returns the finalizers that are not in have. foregroundDeletion is left out if a client
// has added orphan: the API server does not accept both (RB 6.4).
func (m Wanted) Missing(have []string) []string {
	return slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool {
		return slices.Contains(have, f) ||
			f == metav1.FinalizerDeleteDependents && slices.Contains(have, metav1.FinalizerOrphanDependents)
	})
}

// OwnFinalizers returns the finalizers of an object that Weir has added.
func OwnFinalizers(gr schema.GroupResource, finalizers []string) []string {
	if !slices.Contains(finalizers, v1beta1.Finalizer) {
		return nil
	}
	out := []string{v1beta1.Finalizer}
	if slices.Contains(orphanedByDefault, gr) && slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	return out
}

// FinalizersFor returns what the object after a CREATE or UPDATE must carry. Back-fill asks it
// about stored objects, as for an UPDATE that changes nothing. If there are errors, policies could
// not be judged that might want the finalizer, so it must not be removed either.
func (s *Set) FinalizersFor(q Question) (Wanted, []PolicyError) {
	q.Part = "" // all policies decide what an object carries
	v := verdict{set: s, q: &q}
	asDelete := q.asDelete()
	ask := s.askDeletions(asDelete, &v)
	if by := s.propagating(asDelete, ask); by != nil {
		if w := by.wanted(q.Resource.GroupResource()); w.By != "" {
			return w, v.errors
		}
	}
	by := s.braking(asDelete, ask)
	if by == nil {
		by = s.archiving(asDelete, ask)
	}
	if by == nil {
		return Wanted{}, v.errors
	}
	return Wanted{By: by.key.Name, Finalizers: []string{v1beta1.Finalizer}}, v.errors
}

func (c *compiled) wanted(gr schema.GroupResource) Wanted {
	if !c.deletion.addsFinalizer(gr) {
		return Wanted{}
	}
	m := Wanted{By: c.key.Name, Finalizers: []string{v1beta1.Finalizer}}
	if p := c.deletion.propagation; p != nil && slices.Contains(orphanedByDefault, gr) && p.Default != "" &&
		p.Default != v1beta1.Orphan {
		m.Finalizers = append(m.Finalizers, metav1.FinalizerDeleteDependents)
	}
	return m
}

// addsFinalizer reports whether Weir would have to carry out some delete of such an object.
func (d *deletion) addsFinalizer(gr schema.GroupResource) bool {
	p := d.propagation
	switch {
	case (d.brake != nil || d.archive != nil) && gr != definitions:
		return true
	case p == nil:
		return false
	case len(p.Dependents) > 0, p.Annotation == v1beta1.AllowAnnotation,
		p.Default == v1beta1.Foreground, p.Default == v1beta1.Orphan:
		return true
	}
	return p.Default == v1beta1.Background && slices.Contains(orphanedByDefault, gr)
}

func addFinalizers(o object, names []string) []PatchOperation {
	if have, ok := o.at("metadata", "finalizers").([]any); !ok || len(have) == 0 {
		return setFinalizers(o, names)
	}
	var out []PatchOperation
	for _, n := range names {
		out = append(out, PatchOperation{Op: "add", Path: "/metadata/finalizers/-", Value: n})
	}
	return out
}

// setFinalizers replaces all finalizers.
func setFinalizers(o object, names []string) []PatchOperation {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	if o.at("metadata") == nil {
		return []PatchOperation{{Op: "add", Path: "/metadata", Value: map[string]any{"finalizers": list}}}
	}
	return []PatchOperation{{Op: "add", Path: "/metadata/finalizers", Value: list}}
}

func addAnnotation(o object, key, value string) PatchOperation {
	if m, ok := o.at("metadata", "annotations").(map[string]any); !ok || len(m) == 0 {
		return PatchOperation{Op: "add", Path: "/metadata/annotations", Value: map[string]any{key: value}}
	}
	return PatchOperation{Op: "add", Path: annotationPath(key), Value: value}
}

// annotationPath returns the JSON pointer to an annotation.
func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// ArmedAt formats the time at which the finalizer was added.
func ArmedAt(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// armedSkew is how far the clock of a time's writer may be ahead of the reader's.
const armedSkew = 10 * time.Second

// Armed parses the time at which the finalizer was added. Any user who may edit the object can
// write it, so a malformed time, or one in the future, counts as absent: otherwise no client could
// delete the object until then.
func Armed(text string, now time.Time) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !now.IsZero() && at.After(now.Add(armedSkew)) {
		return time.Time{}, false
	}
	return at, true
}

// ArmedSince returns how long ago an object got the finalizer after its creation; false if it never
// did, or the time is not known.
func ArmedSince(obj map[string]any, now time.Time) (time.Duration, bool) {
	at, ok := Armed(object(obj).annotation(v1beta1.ArmedAtAnnotation), now)
	if !ok || !object(obj).hasFinalizer() {
		return 0, false
	}
	return max(0, now.Sub(at)), true
}

// misarmed reports whether the time of an object's finalizer cannot be right: it is then written
// again, once.
func misarmed(o object, now time.Time) bool {
	text := o.annotation(v1beta1.ArmedAtAnnotation)
	_, ok := Armed(text, now)
	return text != "" && !ok
}

// removeFinalizers goes from last to first, so that the indexes of the others stay valid.
func removeFinalizers(o object, names []string) []PatchOperation {
	var out []PatchOperation
	for i, f := range slices.Backward(o.finalizers()) {
		if slices.Contains(names, f) {
			out = append(out, PatchOperation{Op: "remove", Path: "/metadata/finalizers/" + strconv.Itoa(i)})
		}
	}
	return out
}

// Enforcement is how the controller carries out the deletion of an object with the finalizer.
type Enforcement struct {
	Propagation v1beta1.PropagationPolicy
	// By is the policy that says so; "" if none does any more.
	By         string
	dependents *v1beta1.Propagation
	// Limit holds the deletion if more would also be deleted; nil for none.
	Limit *Limit
	// Archive has the object, and what goes with it, recorded before it goes; nil for none.
	Archive *Archiving
	// Errors are policies that could not be judged. Undecided is set if one of them has
	// failurePolicy Fail, and may want the deletion carried out another way.
	Errors    []PolicyError
	Undecided bool
}

// KeepsSome reports whether dependents of some resources are kept though others are deleted.
func (s Enforcement) KeepsSome() bool { return keepsSome(s.dependents) }

// Keeps reports whether dependents of a resource are kept, and lose their reference to the owner.
func (s Enforcement) Keeps(gr schema.GroupResource) bool {
	return s.Propagation == v1beta1.Orphan || keptBy(s.dependents, gr)
}

// Enforce returns how the deletion of a terminating object is carried out. The question is its
// DELETE, with the present object as OldObject, and no User: the finalizers say what was asked for.
func (s *Set) Enforce(q Question) Enforcement {
	q.Operation, q.Object, q.object, q.Options, q.anyUser = Delete, nil, nil, nil, true
	q.Part = "" // all policies decide what an object carries
	v := verdict{set: s, q: &q}
	ask := s.askDeletions(&q, &v)
	by, brake := s.propagating(&q, ask), s.braking(&q, ask)
	out := Enforcement{Propagation: finalizerAsks(q.judged()), Errors: v.errors, Undecided: len(v.refused) > 0}
	if brake != nil && !object(q.NamespaceObject).terminating() {
		out.Limit = &Limit{int(*brake.deletion.brake), brake.key.Name}
	}
	out.Archive = s.archiving(&q, ask).archives()
	if by != nil {
		out.By, out.dependents = by.key.Name, by.deletion.propagation
	}
	if out.Propagation == "" {
		out.Propagation = v1beta1.Background
		if by != nil && by.deletion.propagation.Default != "" {
			out.Propagation = by.deletion.propagation.Default
		}
	}
	return out
}

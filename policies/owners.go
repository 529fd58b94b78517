package policies

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// edit is the change that a request makes to owner references.
type edit struct {
	now []OwnerRef
	// fresh are indexes into now of references that were not there before in exactly this form.
	fresh []int
	// blocking are indexes of those that newly block their owner's deletion.
	blocking []int
}

// editOf returns nil for a request that changes no reference. Order counts, as in the API server's
// own check.
func editOf(q *Question) *edit {
	if q.Operation == Update && sameRefs(object(q.OldObject), object(q.Object)) {
		return nil
	}
	e := &edit{now: object(q.Object).ownerRefs()}
	var before []OwnerRef
	if q.Operation == Update {
		before = object(q.OldObject).ownerRefs()
	} else if len(e.now) == 0 {
		return nil
	}
	blocked := map[types.UID]bool{}
	known := map[OwnerRef]bool{}
	for _, r := range before {
		blocked[r.UID] = r.Block
		known[r] = true
	}
	for i, r := range e.now {
		if r.Block && !blocked[r.UID] {
			e.blocking = append(e.blocking, i)
		}
		if !known[r] {
			e.fresh = append(e.fresh, i)
		}
	}
	return e
}

// ownerSubresources returns the subresources by which owner references can be written.
func ownerSubresources(gr schema.GroupResource) []string {
	if gr == pods {
		return nil
	}
	return metadataSubresources(gr)
}

// sameRefs compares like apimachinery's semantic equality: unset differs from false.
func sameRefs(a, b object) bool {
	was, _ := a.at("metadata", "ownerReferences").([]any)
	is, _ := b.at("metadata", "ownerReferences").([]any)
	return equality.Semantic.DeepEqual(was, is)
}

// decideOwners judges the references that a CREATE or UPDATE writes.
func (s *Set) decideOwners(q *Question, d *Decision, v *verdict) {
	gr := q.Resource.GroupResource()
	if gr == pods && q.Subresource == "status" {
		return // cannot change references
	}
	if len(s.owners) == 0 {
		return
	}
	ed := editOf(q)
	if ed == nil {
		return
	}
	ask := newEvaluator(q, s.owners, "the owner references of ", v)
	j := ownerJudge{q: q, edit: ed, d: d, v: v, seen: map[Access]bool{}}
	cleared := false
	for i, c := range ask.policies {
		if !q.Part.has(c) || !ask.matches(i) {
			continue
		}
		if c.owners.BlockOwnerDeletion == v1beta1.BlockClear && q.Asked != WebhookOwners && !cleared {
			cleared = !c.onTrial()
			for _, i := range ed.blocking {
				says := "is cleared"
				if c.onTrial() {
					says = "would be cleared"
				}
				v.add(c, finding{code: 403, text: fmt.Sprintf("blockOwnerDeletion of the reference of %s to its owner %s %s",
					q.what(), ed.now[i], says)}, warnAndAudit)
				if c.onTrial() {
					continue
				}
				d.Patch = append(d.Patch, PatchOperation{Op: "replace", Path: "/metadata/ownerReferences/" + strconv.Itoa(i) +
					"/blockOwnerDeletion", Value: false})
			}
		}
		if q.Asked != WebhookClear {
			j.judge(c)
		}
	}
}

// ownerJudge judges one edit by one policy after another.
type ownerJudge struct {
	q    *Question
	edit *edit
	d    *Decision
	v    *verdict
	seen map[Access]bool // what is in Needs already
}

var (
	refuse       = []v1beta1.ValidationAction{v1beta1.Deny}
	warnAndAudit = []v1beta1.ValidationAction{v1beta1.Warn, v1beta1.Audit}
)

func (j *ownerJudge) judge(c *compiled) {
	if j.q.Operation == Update && c.owners.Changes == v1beta1.ChangesRequirePermission {
		j.mayDelete(c, "the owner references of "+j.q.what())
	}
	if len(j.edit.blocking) > 0 {
		switch c.owners.BlockOwnerDeletion {
		case v1beta1.BlockRequirePermission:
			j.mayBlock(c)
		case v1beta1.BlockDeny:
			for _, i := range j.edit.blocking {
				j.v.add(c, finding{code: 403,
					text: fmt.Sprintf("%s may not block the deletion of its owner %s", j.q.what(), j.edit.now[i]),
					way:  "Leave out blockOwnerDeletion, or set it to false",
				}, c.actions)
			}
		}
	}
	if r := c.owners.Rules; r != nil {
		j.rules(c, r)
	}
}

// String returns the owner as shown to the user: Deployment "web".
func (r OwnerRef) String() string {
	return fmt.Sprintf("%s %q", r.Kind, r.Name)
}

// rules looks for references that are likely mistakes.
func (j *ownerJudge) rules(c *compiled, r *v1beta1.OwnerRules) {
	if r.ManyControllers != v1beta1.RuleIgnore && r.ManyControllers != "" {
		n := 0
		for _, ref := range j.edit.now {
			if ref.Controller {
				n++
			}
		}
		if n > 1 {
			j.found(c, r.ManyControllers, fmt.Sprintf("%d owner references of %s have controller: true, and only one owner "+
				"may have it", n, j.q.what()))
		}
	}
	if n := len(j.edit.now); n > mostOwners {
		j.found(c, r.ManyOwners, fmt.Sprintf("%s has %d owner references, and Weir expects at most %d", j.q.what(), n,
			mostOwners))
	}
	for n, i := range j.edit.fresh {
		j.ref(c, r, j.edit.now[i])
		if n < mostOwners { // each walks the graph
			j.cycle(c, r, j.edit.now[i])
		}
	}
}

// ref judges one reference. The first rule that applies excludes the others, which would only
// repeat it in other words.
func (j *ownerJudge) ref(c *compiled, r *v1beta1.OwnerRules, ref OwnerRef) {
	q, what := j.q, j.q.what()
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind := j.kind(gvk)
	owner := j.owner(r, ref, kind)
	says := j.owns(ref)
	switch {
	case kind.Known && !kind.Served:
		j.found(c, r.UnservedVersion, fmt.Sprintf("%s is named in a version that is not served: %s would never be "+
			"collected", says, what))
	case kind.Known && kind.Namespaced && !q.namespaced():
		j.found(c, r.NamespacedOwner, fmt.Sprintf("%s is in a namespace, and a cluster-scoped object cannot have such "+
			"an owner: it is never found", says))
	case owner.Answer == Absent:
		j.found(c, r.Dangling, fmt.Sprintf("%s does not exist: the garbage collector would delete %s", says, what))
	case owner.Answer == Present && (owner.Kind != gvk.GroupKind() || owner.Name != ref.Name):
		j.found(c, r.Mismatch, fmt.Sprintf("%s is not what has this uid, which is %s %q: the garbage collector would "+
			"delete %s", says, owner.Kind, owner.Name, what))
	case owner.Answer == Present && owner.Namespace != "" && owner.Namespace != q.Namespace:
		j.found(c, r.OtherNamespace, fmt.Sprintf("%s is in namespace %q: the garbage collector would delete %s", says,
			owner.Namespace, what))
	}
}

// cycle finds an owner that depends on the object it owns.
func (j *ownerJudge) cycle(c *compiled, r *v1beta1.OwnerRules, ref OwnerRef) {
	if self := j.q.judged().uid(); self != "" && (ref.UID == self || j.q.Facts.Depends != nil &&
		j.q.Facts.Depends(ref.UID, self)) {
		j.found(c, r.Cycle, fmt.Sprintf("%s depends on %s itself: neither would ever be collected", j.owns(ref), j.q.what()))
	}
}

func (j *ownerJudge) owns(ref OwnerRef) string {
	return fmt.Sprintf("the owner %s (%s, uid %s) of %s", ref, ref.APIVersion, ref.UID, j.q.what())
}

// owner returns what is known of an owner. The graph knows the objects that it has seen; the API
// server is asked about others, if it matters whether they exist.
func (j *ownerJudge) owner(r *v1beta1.OwnerRules, ref OwnerRef, kind Kind) Owner {
	if j.q.Facts.Owner == nil {
		return Owner{}
	}
	owner := j.q.Facts.Owner(ref, j.q.Namespace)
	if owner.Answer == Present || owner.Answer == Absent || r.Dangling == "" || r.Dangling == v1beta1.RuleIgnore {
		return owner
	}
	if !kind.Served || len(kind.Resources) != 1 || kind.Namespaced && !j.q.namespaced() {
		return owner
	}
	if len(content.IsPathSegmentName(ref.Name)) > 0 {
		return Owner{Answer: Absent} // no object can have such a name
	}
	if j.q.Owners != nil {
		return j.q.Owners[ref] // of more than the most, the rest stays unknown
	}
	if asked := slices.ContainsFunc(j.d.Owners, func(l OwnerLookup) bool { return l.Ref == ref }); !asked &&
		len(j.d.Owners) < mostOwners {
		j.d.Owners = append(j.d.Owners, lookupOf(ref, kind, j.q.Namespace))
	}
	return owner
}

func (j *ownerJudge) kind(gvk schema.GroupVersionKind) Kind {
	if j.q.Facts.Kind == nil {
		return Kind{}
	}
	return j.q.Facts.Kind(gvk)
}

func (j *ownerJudge) found(c *compiled, action v1beta1.RuleAction, text string) {
	if action == v1beta1.RuleIgnore || action == "" {
		return
	}
	j.v.add(c, finding{code: 403, text: text}, []v1beta1.ValidationAction{v1beta1.ValidationAction(action)})
}

// OwnerLookup is where to read an owner.
type OwnerLookup struct {
	Ref       OwnerRef
	Resource  schema.GroupVersionResource
	Namespace string
}

// lookupOf returns where the owner of an object in a namespace is. Its kind must have one resource.
func lookupOf(r OwnerRef, kind Kind, namespace string) OwnerLookup {
	lookup := OwnerLookup{Ref: r, Resource: kind.Resources[0].WithVersion(schema.FromAPIVersionAndKind(r.APIVersion,
		r.Kind).Version)}
	if kind.Namespaced {
		lookup.Namespace = namespace
	}
	return lookup
}

// Answer returns what a read of the lookup shows. An object with another uid is another object, and
// the owner is absent.
func (l OwnerLookup) Answer(obj map[string]any, err error) Owner {
	gvk := schema.FromAPIVersionAndKind(l.Ref.APIVersion, l.Ref.Kind)
	switch {
	case err != nil:
		return Owner{}
	case object(obj).uid() != l.Ref.UID:
		return Owner{Answer: Absent}
	}
	return Owner{Answer: Present, Kind: gvk.GroupKind(), Namespace: l.Namespace, Name: l.Ref.Name}
}

// mostOwners bounds the owners that are read for one request, and is what ManyOwners accepts: a
// user can write 28,000 references into an object.
const mostOwners = 64

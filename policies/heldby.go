package policies

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// definitions are never roots of a brake: the API server itself deletes the objects of a
// terminating definition, whatever holds it.
var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// brakes reports whether a brake can apply to a resource: Weir's finalizer holds the objects.
func brakes(gr schema.GroupResource) bool { return propagates(gr) && gr != definitions }

// Limit is how many objects may be deleted because of a deletion before it is held, and by which
// policy.
type Limit struct {
	Most int
	By   string
}

// braking returns the matching policy with the least limit; nil if there is none.
func (s *Set) braking(q *Question, ask *evaluator) (by *compiled) {
	if !s.mayHold(q, brakes) {
		return nil
	}
	for i, c := range ask.policies {
		if c.deletion.brake == nil || c.onTrial() || by != nil && *c.deletion.brake >= *by.deletion.brake {
			continue
		}
		if ask.matches(i) {
			by = c
		}
	}
	return by
}

// brake returns the policy that may hold a deletion, and tells the user if it will: no client waits
// for a person's decision. It refuses only what nothing could hold.
func (s *Set) brake(q *Question, w propagation, ask *evaluator) (by *compiled, asksCollector bool) {
	by = s.braking(q, ask)
	if by == nil || w.policy == v1beta1.Orphan || !q.Part.has(by) {
		return nil, false
	}
	also, unknown := alsoDeleted(q, w, int(*by.deletion.brake))
	exceeds := also.Total() > int(*by.deletion.brake)
	switch {
	case w.beginsAtOnce(q) && exceeds:
		ask.v.add(by, finding{code: 403,
			text: fmt.Sprintf("%s may not be deleted with propagation policy Foreground: %s, and the cluster's garbage "+
				"collector would not wait for that", q.what(), by.exceeds(ask.v, also)),
			way: fmt.Sprintf("To have it held until a person decides: kubectl delete %s --cascade=background", q.kubectl()),
		}, by.actions)
	case w.beginsAtOnce(q) && unknown != nil:
		ask.v.fail(by, "the delete of "+q.what(), unknown)
	case exceeds:
		ask.v.besides = append(ask.v.besides, finding{policy: by.key, by: by,
			text: fmt.Sprintf("%s is held until a person decides (kubectl get held %s): %s", q.what(),
				v1beta1.HeldRequested+q.Resource.GroupResource().String(), by.exceeds(ask.v, also))})
	}
	return by, q.Collector == CollectorUnknown && w.beginsAtOnce(q) && (exceeds || unknown != nil)
}

// exceeds says how much would also be deleted, and how much the policy allows.
func (c *compiled) exceeds(v *verdict, also AlsoDeleted) string {
	return fmt.Sprintf("%s would also be deleted, and the policy allows %s without a decision: %s",
		objects(also.Total()), atMost(*c.deletion.brake), v.named(v.q, also))
}

// beginsAtOnce reports whether a garbage collector other than Weir would begin with all dependents
// when it sees the deletion, whatever holds the object.
func (w propagation) beginsAtOnce(q *Question) bool {
	foreground := w.asked == v1beta1.Foreground || w.asked == "" && w.byDefault == v1beta1.Foreground
	waits := q.Collector == WeirCollects && (!object(q.OldObject).terminating() || q.judged().hasFinalizer())
	return foreground && !waits
}

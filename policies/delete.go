package policies

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// decideDelete judges a DELETE.
//
//	drain order   → holds up the namespace controller, and nobody else
//	exempt        → allowed
//	allowed       → of the policy whose propagation holds
//	protection    → of every policy that matches
//	not refused   → carried out as Propagation says; armed if the API server would not, and the object is not stamped
func (s *Set) decideDelete(q *Question, d *Decision) {
	var v verdict
	defer v.write(d)
	if q.Subresource != "" {
		return
	}
	s.holdByDrain(q, &v)
	if s.exempt(q) != "" {
		return
	}
	matched := s.matchingDeletions(q, &v)
	way := carry(q, matched)
	if object(q.NamespaceObject).terminating() {
		// All of the namespace goes. A refusal could only be in the way.
		v.refused = nil
	} else {
		if f := way.notAllowed(q); f != nil {
			v.add(*f, way.by.deletion.actions)
		}
		// What falls is counted once, and only if a policy wants to know.
		fall := sync.OnceValues(func() (Fall, error) { return falls(q, way) })
		for _, c := range matched {
			c.protect(q, way, fall, &v)
		}
	}
	if way.by == nil {
		return
	}
	d.Propagation, d.By = way.policy, way.by.key.Name
	d.audit(AuditPropagation, fmt.Sprintf("%s by %s", way.policy, way.by.key))
	d.Arm = way.needsStamp() && !q.judged().stamped() && !q.DryRun && len(v.refused) == 0
}

// matchingDeletions are the DeletionPolicies that match, in their order. Those that cannot be judged are recorded.
func (s *Set) matchingDeletions(q *Question, v *verdict) []*compiled {
	var out []*compiled
	e := evaluation{q: q}
	for _, c := range s.deletion.about(q.Resource.GroupResource()) {
		ok, err := c.matches(&e)
		if err != nil {
			v.fail(c, "the delete of "+q.what(), err.Error())
		} else if ok {
			out = append(out, c)
		}
	}
	return out
}

// carriage is how a deletion is carried out.
type carriage struct {
	by *compiled // whose propagation holds; nil: none does
	// asked is what the request, or a finalizer, asks for; empty for nothing.
	asked v1alpha1.PropagationPolicy
	// unaided is what the API server and the built-in collector would do.
	unaided v1alpha1.PropagationPolicy
	policy  v1alpha1.PropagationPolicy
	// chosen: the request asked for it, so it has to be allowed.
	chosen bool
}

func carry(q *Question, matched []*compiled) carriage {
	w := carriage{asked: askedFor(q)}
	w.unaided = w.asked
	byType := slices.Contains(orphanedByDefault, q.Resource.GroupResource())
	if w.asked == "" {
		w.unaided = v1alpha1.Background
		if byType {
			w.unaided = v1alpha1.Orphan
		}
	}
	w.policy = w.unaided
	if i := slices.IndexFunc(matched, (*compiled).propagates); i >= 0 {
		w.by = matched[i]
	} else {
		return w
	}
	def := w.by.deletion.propagation.Default
	switch {
	case w.asked == "" && byType && (def == "" || !w.by.deletion.strict):
		w.chosen = true // the server chose for the user, and nobody can tell later
	case (w.asked == "" || w.asked == v1alpha1.Background) && def != "":
		w.policy = def
	default:
		w.chosen = true
	}
	return w
}

func (c *compiled) propagates() bool { return c.deletion.propagation != nil }

// askedFor is the propagation that a DELETE asks for: by its options, or else by a finalizer of the object.
func askedFor(q *Question) v1alpha1.PropagationPolicy {
	opts := object(q.Options)
	if p := opts.str("propagationPolicy"); p != "" {
		return v1alpha1.PropagationPolicy(p)
	}
	if orphan, ok := opts.at("orphanDependents").(bool); ok {
		switch {
		case orphan:
			return v1alpha1.Orphan
		case q.isNamespace(): // an implementation of its own
			return v1alpha1.Foreground
		}
		return v1alpha1.Background
	}
	return finalizerAsks(q.judged())
}

func finalizerAsks(o object) v1alpha1.PropagationPolicy {
	for _, f := range o.finalizers() {
		switch f {
		case "orphan":
			return v1alpha1.Orphan
		case "foregroundDeletion":
			return v1alpha1.Foreground
		}
	}
	return ""
}

// needsStamp tells whether Weir has to carry the deletion out, because nobody else would do it this way.
func (w carriage) needsStamp() bool {
	if w.by == nil {
		return false
	}
	return w.policy != w.unaided || w.policy != v1alpha1.Orphan && len(w.by.deletion.propagation.Dependents) > 0
}

func (w carriage) notAllowed(q *Question) *finding {
	if w.by == nil || !w.chosen || w.by.deletion.allows(w.policy) {
		return nil
	}
	allowed := w.by.deletion.propagation.Allowed
	f := &finding{policy: w.by.key, code: 403}
	if w.asked == "" {
		f.text = fmt.Sprintf("%s may not be deleted without a propagation policy, which means %s here: allowed %s", q.what(), w.policy, oneOf(allowed))
	} else {
		f.text = fmt.Sprintf("%s may not be deleted with propagation policy %s: allowed %s", q.what(), w.asked, oneOf(allowed))
	}
	to := allowed[0]
	if def := w.by.deletion.propagation.Default; def != "" {
		to = def
	}
	f.way = fmt.Sprintf("To delete it as allowed: kubectl delete %s --cascade=%s", q.kubectl(), strings.ToLower(string(to)))
	return f
}

func oneOf(list []v1alpha1.PropagationPolicy) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = string(p)
	}
	slices.Sort(names)
	if len(names) == 1 {
		return "is " + names[0]
	}
	return "are " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// spares tells whether dependents of a resource are kept when their owner's deletion is carried out.
func (w carriage) spares(gr schema.GroupResource) bool {
	return w.by != nil && sparedBy(w.by.deletion.propagation, gr)
}

func sparedBy(p *v1alpha1.Propagation, gr schema.GroupResource) bool {
	if p == nil {
		return false
	}
	for _, r := range p.Dependents {
		if ruleNames(r.ResourceRule, gr) {
			return r.Action == v1alpha1.OrphanDependent
		}
	}
	return false
}

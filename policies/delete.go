package policies

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// decideDelete judges a DELETE.
//
//	drain order   → holds up the namespace controller only
//	exempt        → allowed; so is a DELETE of an object that terminates, unless it asks for another
//	                propagation
//	allowed       → of the policy whose propagation holds
//	protection    → of every policy that matches; in a namespace that terminates, of those that
//	                protect from the collectors
//	archive       → refused, with Fail, only where another collector would begin before anything is
//	                recorded
//	brake         → of the one with the least limit: told, since the controller holds; refused only
//	                where nothing could hold
//	not refused   → carried out as Propagation says; armed if the API server would not, and the
//	                object carries no finalizer
func (s *Set) decideDelete(q *Question, d *Decision) {
	v := verdict{set: s, q: q}
	defer v.write(d)
	if q.Subresource != "" {
		return
	}
	s.holdByDrain(q, &v)
	terminates := object(q.OldObject).terminating()
	if q.Asked == "" {
		s.guard(q, &v)
	}
	if s.isSystem(q.User) || terminates && !another(q) {
		return
	}
	ask := s.askDeletions(q, &v)
	way := s.propagationOf(q, ask)
	d.AsksCollector = q.Collector == CollectorUnknown && way.losesKept(q)
	var brake *compiled
	if object(q.NamespaceObject).terminating() {
		// All of the namespace goes, and a refusal would only be in the way, but for what is
		// protected from the collectors, too.
		v.refused = nil
		s.protect(q, way, newEvaluator(q, s.guards, "the delete of ", &v))
	} else {
		if f := way.notAllowed(q); f != nil {
			v.add(way.by, *f, way.by.actions)
		}
		s.allowedToSome(q, way, ask)
		s.protect(q, way, ask)
		var asks bool
		brake, asks = s.brake(q, way, ask)
		d.AsksCollector = d.AsksCollector || asks
	}
	archive := s.archive(q, way, ask, d)
	// Nothing can be put on an object that terminates; of what carries the finalizer the controller
	// enforces the propagation then.
	enforced := len(v.refused) == 0 && !terminates
	wanted := d.hold(brake, archive, enforced)
	if way.by != nil && q.Part.has(way.by) {
		if optionAsks(q) == v1beta1.Background && way.policy != v1beta1.Background {
			v.besides = append(v.besides, finding{policy: way.by.key,
				text: fmt.Sprintf("%s is deleted with propagation %s, not Background", q.what(), way.policy)})
		}
		d.Propagation, d.By = way.policy, way.by.key.Name
		d.audit(AuditPropagation, fmt.Sprintf("%s by %s", way.policy, way.by.key))
		if way.needsFinalizer() {
			d.Enforced, wanted = enforced, way.by.wanted(q.Resource.GroupResource())
		}
	}
	if d.Enforced && !q.DryRun && (len(wanted.missing(q.judged())) > 0 || misarmed(q.judged(), q.Now)) {
		d.Arm, d.Wanted = s.allowedByAll(q), wanted
	}
}

// allowedByAll reports whether all policies allow a DELETE of which only a part was asked: a DELETE
// that is refused elsewhere needs no finalizer, and its user must not be told to try again.
func (s *Set) allowedByAll(q *Question) bool {
	if q.Part == "" {
		return true // as is known by now
	}
	var d Decision
	full := *q
	full.Part = ""
	s.decideDelete(&full, &d)
	return d.Allowed
}

// propagation is how a deletion is carried out.
type propagation struct {
	by *compiled // whose propagation holds; nil for none
	// asked is what the request, or a finalizer, asks for; "" for nothing.
	asked v1beta1.PropagationPolicy
	// byDefault is what the API server and the built-in collector would do.
	byDefault v1beta1.PropagationPolicy
	policy    v1beta1.PropagationPolicy
	// chosen: the request asked for the propagation, so it must be allowed.
	chosen bool
}

func (s *Set) propagationOf(q *Question, ask *evaluator) propagation {
	w := propagation{asked: optionAsks(q)}
	w.byDefault = w.asked
	byType := slices.Contains(orphanedByDefault, q.Resource.GroupResource())
	if w.asked == "" {
		w.byDefault = finalizerAsks(q.judged())
		if !byType || len(OwnFinalizers(q.Resource.GroupResource(), q.judged().finalizers())) < 2 {
			w.asked = w.byDefault // a client has put it there, not Weir
		}
	}
	if w.byDefault == "" {
		w.byDefault = v1beta1.Background
		if byType {
			w.byDefault = v1beta1.Orphan
		}
	}
	w.policy = w.byDefault
	if by := s.propagating(q, ask); by != nil {
		return w.under(by)
	}
	return w
}

// under returns how the deletion is carried out if a policy's propagation holds.
func (w propagation) under(by *compiled) propagation {
	w.by, w.chosen = by, false
	def := by.deletion.propagation.Default
	if (w.asked == "" || w.asked == v1beta1.Background) && def != "" {
		w.policy = def
	} else {
		w.chosen = true
	}
	return w
}

// notPropagated are the resources to which propagation does not apply. Weir enforces a propagation
// by deleting a terminating object again with another policy (RB 6.34). That does not work for
// pods, which terminate gracefully, nor for namespaces, whose storage has rules of its own (RB 6.6,
// 7.3).
//
// It does not apply to objects that stand for a machine. While Weir is down nothing removes its
// finalizer: the Node of a machine that is gone would stay, and as long as it does Kubernetes
// leaves the pods of that machine where they are, Weir's own among them. A machine of the same name
// would take over the terminating object, and lose it when Weir is back.
//
// It does not apply to permissions. Only users who have all that a role grants may change what it
// grants, or to whom, and the API server counts a finalizer with an annotation as such a change:
// Weir's would go on where Weir happens to have it all, and might never come off.
//
// It does not apply to what '*' leaves out, even if that is named: a finalizer on these would be in
// the way of the cluster, or of people who want to go on without Weir.
var notPropagated = slices.Concat([]schema.GroupResource{pods, namespaceResource}, machines, permissions)

var (
	pods              = schema.GroupResource{Resource: "pods"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}

	machines = []schema.GroupResource{{Resource: "nodes"}, {Group: "storage.k8s.io", Resource: "csinodes"}}

	permissions = []schema.GroupResource{
		{Group: rbacv1.GroupName, Resource: "roles"}, {Group: rbacv1.GroupName, Resource: "rolebindings"},
		{Group: rbacv1.GroupName, Resource: "clusterroles"}, {Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
	}
)

// IsPermission reports whether the objects of a resource are permissions. Users who may write one
// may change its finalizers, but its annotations only if they have what it grants.
func IsPermission(gr schema.GroupResource) bool { return slices.Contains(permissions, gr) }

// propagates reports whether propagation can apply to a resource.
func propagates(gr schema.GroupResource) bool {
	return !slices.Contains(notPropagated, gr) && !wildcardLeavesOut(gr.Group, gr.Resource)
}

// propagating returns the policy whose propagation holds, the first that matches; nil if there is
// none.
func (s *Set) propagating(q *Question, ask *evaluator) *compiled {
	if !s.mayHold(q, propagates) {
		return nil
	}
	for i, c := range ask.policies {
		if c.deletion.propagation != nil && !c.asksWho() && !c.onTrial() && ask.matches(i) {
			return c.declared(q.judged())
		}
	}
	return nil
}

// mayHold reports whether Weir's finalizer may hold the object: one of a resource that it applies
// to, and not in Weir's own namespace.
func (s *Set) mayHold(q *Question, applies func(schema.GroupResource) bool) bool {
	return applies(q.Resource.GroupResource()) && (s.own == "" || q.Namespace != s.own)
}

// asksWho reports whether a match of the policy depends on the request. What it allows then holds
// beside the propagation of another policy, for which the object is prepared.
func (c *compiled) asksWho() bool { return c.forSome() || c.asksHow }

// allowedToSome checks a deletion against what policies allow whose propagation does not hold: of
// those for some requests, and of those on trial.
func (s *Set) allowedToSome(q *Question, w propagation, ask *evaluator) {
	if !s.mayHold(q, propagates) {
		return
	}
	for i, c := range ask.policies {
		if c.deletion.propagation == nil || !c.asksWho() && !c.onTrial() || !q.Part.has(c) {
			continue
		}
		at := w
		at.by, at.chosen = c, true
		if !c.asksWho() { // as if it were in force
			at.policy = w.byDefault
			at = at.under(c.declared(q.judged()))
		}
		if f := at.notAllowed(q); f != nil && ask.matches(i) {
			ask.v.add(c, *f, c.actions)
		}
	}
}

// optionAsks returns the propagation that a DELETE asks for by its options.
func optionAsks(q *Question) v1beta1.PropagationPolicy {
	opts := object(q.Options)
	if p := opts.str("propagationPolicy"); p != "" {
		return v1beta1.PropagationPolicy(p)
	}
	if orphan, ok := opts.at("orphanDependents").(bool); ok {
		switch {
		case orphan:
			return v1beta1.Orphan
		case q.isNamespace(): // namespaces have an implementation of their own
			return v1beta1.Foreground
		}
		return v1beta1.Background
	}
	return ""
}

func finalizerAsks(o object) v1beta1.PropagationPolicy {
	for _, f := range o.finalizers() {
		switch f {
		case "orphan":
			return v1beta1.Orphan
		case "foregroundDeletion":
			return v1beta1.Foreground
		}
	}
	return ""
}

// needsFinalizer reports whether Weir has to carry the deletion out, because no other collector
// would do it this way.
func (w propagation) needsFinalizer() bool {
	if w.by == nil {
		return false
	}
	return w.policy != w.byDefault || w.policy != v1beta1.Orphan && len(w.by.deletion.propagation.Dependents) > 0
}

// keepsSome reports whether some dependents are to be kept.
func (w propagation) keepsSome() bool {
	return w.by != nil && keepsSome(w.by.deletion.propagation)
}

func keepsSome(p *v1beta1.Propagation) bool {
	return p != nil && slices.ContainsFunc(p.Dependents, func(r v1beta1.DependentRule) bool {
		return r.Action == v1beta1.OrphanDependent
	})
}

// losesKept reports whether dependents that are to be kept would be deleted: the API server makes
// it a foreground deletion, and the collector begins with all dependents when it sees that. Weir's
// collector waits until those are released, if Weir's finalizer is on the object; none can be added
// to a terminating object.
func (w propagation) losesKept(q *Question) bool {
	return w.keepsSome() && w.beginsAtOnce(q)
}

func (w propagation) notAllowed(q *Question) *finding {
	if w.losesKept(q) {
		with := "with propagation policy Foreground"
		if w.asked == "" {
			with = "without a propagation policy, which means Foreground here"
		}
		return &finding{code: 403,
			text: q.what() + " may not be deleted " + with + ": some of its dependents are to be kept",
			way:  fmt.Sprintf("To delete it as the policy says: kubectl delete %s --cascade=background", q.kubectl()),
		}
	}
	if w.by == nil || !w.chosen || w.by.deletion.allows(w.policy) {
		return nil
	}
	allowed := w.by.deletion.propagation.Allowed
	which := oneOf(allowed)
	if w.by.deletion.declares {
		which += ", by its annotation " + v1beta1.PropagationAnnotation
	}
	f := &finding{code: 403}
	if w.asked == "" {
		f.text = fmt.Sprintf("%s may not be deleted without a propagation policy, which means %s here: allowed %s",
			q.what(), w.policy, which)
	} else {
		f.text = fmt.Sprintf("%s may not be deleted with propagation policy %s: allowed %s", q.what(), w.asked, which)
	}
	to := allowed[0]
	if def := w.by.deletion.propagation.Default; def != "" {
		to = def
	}
	f.way = fmt.Sprintf("To delete it as allowed: kubectl delete %s --cascade=%s", q.kubectl(),
		strings.ToLower(string(to)))
	return f
}

func oneOf(list []v1beta1.PropagationPolicy) string {
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

// keeps reports whether dependents of a resource are kept when their owner's deletion is carried
// out.
func (w propagation) keeps(gr schema.GroupResource) bool {
	return w.by != nil && keptBy(w.by.deletion.propagation, gr)
}

func keptBy(p *v1beta1.Propagation, gr schema.GroupResource) bool {
	if p == nil {
		return false
	}
	for _, r := range p.Dependents {
		if ruleNames(r.ResourceRule, gr) {
			return r.Action == v1beta1.OrphanDependent
		}
	}
	return false
}

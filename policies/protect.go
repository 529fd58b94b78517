package policies

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// protect finds what policies have against a DELETE. A policy that accepts it is not asked whether
// it matches. What would also be deleted is counted once, and only for a policy that may match.
func (s *Set) protect(q *Question, w propagation, ask *evaluator) {
	var also AlsoDeleted
	var unknown error // why the count may be too low
	counted := false
	for i, c := range ask.policies {
		p := c.deletion.protection
		if p == nil || !c.protectsFrom(q.request()) || !q.Part.has(c) {
			continue
		}
		var stale string
		if p.Confirmation.Asked() {
			var yes bool
			if yes, stale = s.confirmed(q, c, w); yes {
				continue
			}
		}
		if p.MaxDependents == nil {
			// What terminates has been deleted, be it by a mistake: it is only about what becomes
			// of its dependents.
			if !object(q.OldObject).terminating() && ask.matches(i) {
				ask.v.add(c, finding{code: 403,
					text: q.what() + " may not be deleted without confirmation" + stale,
					way:  confirming(c, q, w, "it"),
				}, c.actions)
			}
			continue
		}
		if !counted {
			if ask.says(i) == saysNo {
				continue
			}
			also, unknown = alsoDeleted(q, w, ask.accepted())
			counted = true
		}
		accepted := unknown == nil && also.Total() <= int(*p.MaxDependents)
		if !accepted && ask.matches(i) {
			c.limit(q, w, also, unknown, stale, ask.v)
		}
	}
}

// request returns which way of deleting an object a DELETE is.
func (q *Question) request() v1beta1.ProtectedRequest {
	if q.evicted {
		return v1beta1.ProtectEvict
	}
	return v1beta1.ProtectDelete
}

// protectsFrom reports whether the policy protects from a way of deleting an object.
func (c *compiled) protectsFrom(r v1beta1.ProtectedRequest) bool {
	p := c.deletion.protection
	return p != nil && (len(p.Requests) == 0 || slices.Contains(p.Requests, r))
}

// limit reports that more would also be deleted than the policy accepts, or that the number is not
// known.
func (c *compiled) limit(q *Question, w propagation, also AlsoDeleted, unknown error, stale string, v *verdict) {
	p := c.deletion.protection
	if also.Total() <= int(*p.MaxDependents) { // what is not known can only add to it
		if also.Cut { // users can bring that about
			v.add(c, finding{code: 403,
				text: q.what() + " may not be deleted: too many references lead to it to count which objects would also be " +
					"deleted" + stale,
				way: waysOn(c, q, w)}, c.actions)
		} else if unknown != nil {
			v.fail(c, "the delete of "+q.what(), unknown)
		}
		return
	}
	f := finding{code: 409,
		text: fmt.Sprintf("%s may not be deleted: %s would also be deleted, and the policy allows %s: %s%s",
			q.what(), objects(also.Total()), atMost(*p.MaxDependents), v.named(q, also), stale)}
	f.way = waysOn(c, q, w)
	v.add(c, f, c.actions)
}

// waysOn returns what the user can do now, one line each. A command to paste is at the end of its
// line.
func waysOn(c *compiled, q *Question, w propagation) string {
	var ways []string
	counted := q.isNamespace() || q.isCRD()
	if !counted && (w.by == nil || w.by.deletion.allows(v1beta1.Orphan)) {
		ways = append(ways, fmt.Sprintf("To keep them: kubectl delete %s --cascade=orphan", q.kubectl()))
	}
	if c.deletion.protection.Confirmation.Asked() {
		ways = append(ways, confirming(c, q, w, "them too"))
	} else {
		ways = append(ways, "To delete it, delete them first")
	}
	return strings.Join(ways, "\n")
}

func atMost(n int32) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(int(n))
}

func objects(n int) string {
	return words.Count(n, "object", "objects")
}

// accepted returns the largest limit of the policies.
func (a *evaluator) accepted() (most int) {
	for _, c := range a.policies {
		if p := c.deletion.protection; p != nil && p.MaxDependents != nil {
			most = max(most, int(*p.MaxDependents))
		}
	}
	return most
}

// alsoDeleted counts what would also be deleted by a DELETE. With an error it is at least the
// returned number. The content of a namespace or definition is counted first; only if that is
// accepted, its dependents are, too.
func alsoDeleted(q *Question, w propagation, accepted int) (AlsoDeleted, error) {
	s := Search{UID: q.judged().uid(), Kept: w.keeps}
	held, known, what := AlsoDeleted{}, true, "what depends on the object"
	switch {
	case q.isNamespace():
		if q.Facts.Content == nil {
			return held, errors.New("what namespaces hold is not known yet")
		}
		s.Namespace, what = q.name(), "what the namespace holds"
		held, known = q.Facts.Content(s.Namespace)
	case q.isCRD():
		if q.Facts.Instances == nil {
			return held, errors.New("the number of custom resources is not known yet")
		}
		gr, err := q.defines()
		if err != nil {
			return held, err
		}
		s.Instances, what = gr, "the number of "+gr.String()
		held, known = q.Facts.Instances(gr)
	case w.policy == v1beta1.Orphan:
		return held, nil
	case q.Facts.Dependents == nil:
		return held, errors.New("the ownership graph is not known yet")
	}
	if held.Total() <= accepted && q.Facts.Dependents != nil {
		all, complete := q.Facts.Dependents(s, accepted)
		held, known = all, known && complete
	}
	if !known {
		return held, fmt.Errorf("%s is not fully known yet", what)
	}
	return held, nil
}

// defines returns the resource of a CustomResourceDefinition.
func (q *Question) defines() (schema.GroupResource, error) {
	crd, err := q.oldObject.full(q.OldObject)
	if err != nil {
		return schema.GroupResource{}, err
	}
	o := object(crd)
	return schema.GroupResource{Group: o.str("spec", "group"), Resource: o.str("spec", "names", "plural")}, nil
}

// Bounds of what a message lists.
const (
	mostKinds = 6
	mostNames = 3
)

// String lists what would also be deleted: the largest kinds first, with the first names.
func (f AlsoDeleted) String() string {
	var parts []string
	rest, restKinds := 0, 0
	for i, k := range f.largest() {
		if i >= mostKinds {
			rest, restKinds = rest+k.Count, restKinds+1
			continue
		}
		parts = append(parts, k.String())
	}
	if restKinds > 0 {
		parts = append(parts, objects(rest)+" of "+words.Count(restKinds, "other kind", "other kinds"))
	}
	return strings.Join(parts, "; ")
}

// String returns the number of objects of a kind, and names: 12 pods (a, b, c, …).
func (k KindCount) String() string {
	names := slices.Sorted(slices.Values(k.Names))
	s := fmt.Sprintf("%d %s", k.Count, k.Resource)
	if len(names) == 0 {
		return s
	}
	more := ""
	if len(names) > mostNames {
		names = names[:mostNames]
	}
	if k.Count > len(names) {
		more = ", …"
	}
	return s + " (" + strings.Join(names, ", ") + more + ")"
}

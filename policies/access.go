package policies

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Access is a permission that the user of a question may have: the question of a
// SubjectAccessReview.
type Access struct {
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// Answer is the API server's answer about an Access. An answer that could not be had is a no.
type Answer bool

func (a Access) resource() string {
	if a.Subresource == "" {
		return a.Resource
	}
	return a.Resource + "/" + a.Subresource
}

// rule returns the RBAC rule that grants the access.
func (a Access) rule() string {
	kind := "ClusterRole"
	if a.Namespace != "" {
		kind = fmt.Sprintf("Role in namespace %q, or ClusterRole", a.Namespace)
	}
	return fmt.Sprintf("Missing RBAC rule (%s):\n- apiGroups: [%q]\n  resources: [%q]\n  verbs: [%q]", kind, a.Group,
		a.resource(), a.Verb)
}

// lacks says that the user does not have the access.
func (a Access) lacks(user string) string {
	s := fmt.Sprintf("user %q may not %s %s in API group %q", user, a.Verb, a.resource(), a.Group)
	if a.Namespace != "" {
		s += fmt.Sprintf(" in namespace %q", a.Namespace)
	}
	return s
}

// everyFinalizer is the permission that makes looking up owners' kinds unnecessary: discovery must
// not hold up a user who has it.
var everyFinalizer = Access{Verb: "update", Group: "*", Version: "*", Resource: "*", Subresource: "finalizers",
	Name: "*"}

// ask returns the answer to a policy's question, or records in Needs that there is none yet.
func (j *ownerJudge) ask(c *compiled, a Access) (yes, known bool) {
	answer, known := j.q.Answers[a]
	if !known {
		j.d.Binding = j.d.Binding || !c.onTrial()
		if !j.seen[a] {
			j.seen[a] = true
			j.d.Needs = append(j.d.Needs, a)
		}
	}
	return bool(answer), known
}

// mayDelete requires that a user who makes a change may also delete the object, because the change
// can amount to that.
func (j *ownerJudge) mayDelete(c *compiled, changed string) {
	q := j.q
	gvr, sub := q.RequestResource, q.RequestSubresource
	if gvr.Empty() {
		gvr, sub = q.Resource, q.Subresource
	}
	a := Access{Verb: "delete", Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Subresource: sub,
		Namespace: q.Namespace, Name: q.name()}
	if yes, known := j.ask(c, a); known && !yes {
		j.v.add(c, finding{code: 403,
			text: fmt.Sprintf("%s may be changed only by a user who may delete it: %s", changed, a.lacks(q.User.Name)),
			way:  a.rule(),
		}, c.actions)
	}
}

// mayBlock requires that a user who blocks an owner's deletion may set the owner's finalizers,
// which would do the same.
func (j *ownerJudge) mayBlock(c *compiled) {
	if yes, known := j.ask(c, everyFinalizer); yes || !known {
		return
	}
	if j.q.Facts.Kind == nil {
		j.v.fail(c, "the owner references of "+j.q.what(), errors.New("the kinds that the cluster serves are not known yet"))
		return
	}
	for _, i := range j.edit.blocking {
		ref := j.edit.now[i]
		cannot := fmt.Sprintf("%s may not block the deletion of its owner %s: ", j.q.what(), ref)
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		kind := Kind{}
		if err == nil {
			kind = j.q.Facts.Kind(gv.WithKind(ref.Kind))
		}
		if err == nil && !kind.Known {
			j.v.fail(c, "the owner references of "+j.q.what(), fmt.Errorf("the kinds that are served in %q are not known yet",
				ref.APIVersion))
			continue
		}
		if err != nil || !kind.Served || len(kind.Resources) == 0 {
			j.v.add(c, finding{code: 403, text: cannot + fmt.Sprintf("no resource is known for kind %s in %q", ref.Kind,
				ref.APIVersion)}, c.actions)
			continue
		}
		for _, r := range kind.Resources { // all of them, if the kind has several
			a := Access{Verb: "update", Group: r.Group, Version: gv.Version, Resource: r.Resource, Subresource: "finalizers",
				Name: ref.Name}
			if kind.Namespaced {
				a.Namespace = j.q.Namespace
			}
			if yes, known := j.ask(c, a); known && !yes {
				j.v.add(c, finding{code: 403, text: cannot + a.lacks(j.q.User.Name), way: a.rule()}, c.actions)
			}
		}
	}
}

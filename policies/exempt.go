package policies

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// namespaceController is who empties namespaces in a cluster with the built-in collectors. A DrainPolicy holds it up.
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// systemUsers are the collectors that every cluster may have. To refuse their deletes leaves cascades half done.
var systemUsers = []string{
	"system:kube-controller-manager",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	namespaceController,
	"system:serviceaccount:kube-system:pod-garbage-collector",
}

// nodesGroup are the kubelets.
const nodesGroup = "system:nodes"

// leftOut are the resources of wildcardLeavesOut; without a resource, a whole group.
var leftOut = []schema.GroupResource{
	{Group: "", Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
	{Group: "coordination.k8s.io", Resource: "leases"}, {Group: v1alpha1.GroupVersion.Group},
}

// wildcardLeavesOut are resources that '*' does not name: there are very many of them and nobody means them, or, for
// Weir's own, a policy about everything would stand between the user and its correction.
func wildcardLeavesOut(group, resource string) bool {
	return slices.ContainsFunc(leftOut, func(gr schema.GroupResource) bool {
		return gr.Group == group && (gr.Resource == "" || gr.Resource == resource)
	})
}

// exempt tells why no policy judges a request; empty means that policies do. The same is said in CEL by
// matchConditions, so that such requests cost no call.
func (s *Set) exempt(q *Question) string {
	if q.OldObject != nil && object(q.OldObject).terminating() {
		return "the object is being deleted already"
	}
	if s.isSystem(q.User) {
		return "the user is part of the system"
	}
	return ""
}

func (s *Set) isSystem(u User) bool {
	return slices.Contains(s.system, u.Name) || slices.Contains(u.Groups, nodesGroup)
}

// matchConditions in CEL: what exempt says, where the API server can already see it.
func (s *Set) notSystem() string {
	quoted := make([]string, len(s.system))
	for i, u := range s.system {
		quoted[i] = celString(u)
	}
	return "!(has(request.userInfo.username) && request.userInfo.username in [" + strings.Join(quoted, ", ") + "]) && " +
		"!(has(request.userInfo.groups) && " + celString(nodesGroup) + " in request.userInfo.groups)"
}

const notTerminating = "oldObject == null || !has(oldObject.metadata.deletionTimestamp)"

// celString quotes for CEL: user names come from flags and may hold anything.
func celString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}

// notLeftOut says in CEL what '*' leaves out and no rule spells out; empty without a '*'.
func notLeftOut(rules []v1alpha1.ResourceRule) string {
	if !wild(rules) {
		return ""
	}
	var parts []string
	for _, gr := range leftOut {
		is := "request.resource.group == " + celString(gr.Group)
		if gr.Resource != "" {
			if namesResource(rules, gr) {
				continue
			}
			is += " && request.resource.resource == " + celString(gr.Resource)
		} else if slices.ContainsFunc(spelled(rules), func(r schema.GroupResource) bool { return r.Group == gr.Group }) {
			continue
		}
		parts = append(parts, "!("+is+")")
	}
	return strings.Join(parts, " && ")
}

package policies

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// GarbageCollector is the user of the built-in collector if kube-controller-manager runs with
// --use-service-account-credentials.
const GarbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// namespaceController is the user that empties namespaces in a cluster with the built-in
// collectors. A DrainPolicy holds it up.
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// oneIdentity is the user of all controllers if kube-controller-manager runs without
// --use-service-account-credentials.
const oneIdentity = "system:kube-controller-manager"

// emptiesNamespaces reports whether a DELETE in a terminating namespace is the namespace
// controller's. If it shares an identity with others, it is recognised by how it deletes:
// collections, and otherwise objects in Background without preconditions. The garbage collector
// always names a uid. Another controller that deletes that way there (the CronJob controller does
// Jobs) retries, like the namespace controller.
func emptiesNamespaces(q *Question) bool {
	switch q.User.Name {
	case namespaceController:
		return true
	case oneIdentity:
		options := object(q.Options)
		return q.Name == "" ||
			options.str("propagationPolicy") == string(v1beta1.Background) && options.at("preconditions") == nil
	}
	return false
}

// isEmptying is emptiesNamespaces in CEL.
func isEmptying() string {
	return "has(request.userInfo.username) && (request.userInfo.username == " + celString(namespaceController) +
		" || request.userInfo.username == " + celString(oneIdentity) + " && (" + emptiesAsOne + "))"
}

// emptiesAsOne is the part of it under one identity.
const emptiesAsOne = "!has(request.name) || request.name == '' || " +
	"has(request.options) && request.options != null && has(request.options.propagationPolicy) && " +
	"request.options.propagationPolicy == 'Background' && " +
	"!has(request.options.preconditions)"

// systemUsers are the collectors that a cluster may have. To refuse their deletes leaves cascades
// half done.
var systemUsers = []string{
	oneIdentity,
	GarbageCollector,
	namespaceController,
	"system:serviceaccount:kube-system:pod-garbage-collector",
}

// nodesGroup is the group of kubelets.
const nodesGroup = "system:nodes"

// leftOut are the resources of wildcardLeavesOut. Without a resource, an entry is a whole group.
var leftOut = []schema.GroupResource{
	{Group: "", Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
	{Group: "coordination.k8s.io", Resource: "leases"}, {Group: v1beta1.GroupVersion.Group},
	// They configure calls to a webhook or a server, and are the way past one that is down.
	{Group: "admissionregistration.k8s.io"}, {Group: "apiregistration.k8s.io"},
	// An API server answers these, and stores none; most delegated authorization consists of them.
	{Group: "authentication.k8s.io"}, {Group: "authorization.k8s.io"}, {Group: "", Resource: "componentstatuses"},
	{Group: "", Resource: "bindings"},
}

// wildcardLeavesOut reports whether '*' does not name a resource: it has very many objects and no
// user means them, or a policy about everything would stand between users and its correction, or
// between the cluster and its work.
func wildcardLeavesOut(group, resource string) bool {
	return slices.ContainsFunc(leftOut, func(gr schema.GroupResource) bool {
		return gr.Group == group && (gr.Resource == "" || gr.Resource == resource)
	})
}

// exempt reports whether no policy judges a request. matchConditions say the same in CEL, so that
// such requests cost no call.
func (s *Set) exempt(q *Question) bool {
	return object(q.OldObject).terminating() || s.isSystem(q.User)
}

func (s *Set) isSystem(u User) bool {
	return slices.Contains(s.system, u.Name) || slices.Contains(u.Groups, nodesGroup)
}

// notSystem is isSystem in CEL, negated: a matchCondition.
func (s *Set) notSystem() string {
	return "!(has(request.userInfo.username) && request.userInfo.username in " + celList(s.system) + ") && " +
		"!(has(request.userInfo.groups) && " + celString(nodesGroup) + " in request.userInfo.groups)"
}

const notTerminating = "oldObject == null || !has(oldObject.metadata.deletionTimestamp)"

// changesPropagation is the CEL for DELETEs of a terminating object that ask for a propagation.
const changesPropagation = "has(request.options) && request.options != null && " +
	"(has(request.options.propagationPolicy) || has(request.options.orphanDependents))"

// asksForeground is the CEL for a DELETE that asks for Foreground, by its options or a finalizer.
const asksForeground = "has(request.options) && request.options != null && has(request.options.propagationPolicy) && " +
	"request.options.propagationPolicy == 'Foreground' || 'foregroundDeletion' in oldObject.metadata.finalizers"

// another reports whether a DELETE of a terminating object can change its propagation: the API
// server goes by the last that was asked for (RB 6.34).
func another(q *Question) bool {
	asked := optionAsks(q)
	return asked != "" && asked != finalizerAsks(object(q.OldObject))
}

// excluded are users whose requests a policy does not judge or, as only, the users whose requests
// alone it judges.
type excluded struct {
	users, groups []string
	accounts      []string // NAMESPACE/NAME, NAMESPACE/*
	controllers   bool
}

// controllerUsers are Kubernetes' own controllers that are not service accounts of kube-system.
// Rollouts and nodes wait for their deletes.
var controllerUsers = []string{"system:kube-scheduler", "system:cloud-controller-manager", "system:apiserver"}

const (
	accountPrefix    = "system:serviceaccount:"
	controllerPrefix = accountPrefix + "kube-system:" // kube-controller-manager's, a cloud provider's, add-ons
)

func isController(user string) bool {
	return slices.Contains(controllerUsers, user) ||
		strings.HasPrefix(user, controllerPrefix) && user != GarbageCollector && user != namespaceController
}

func (s *excluded) has(u User) bool {
	return slices.Contains(s.users, u.Name) || s.controllers && isController(u.Name) ||
		slices.ContainsFunc(s.groups, func(g string) bool { return slices.Contains(u.Groups, g) }) ||
		slices.ContainsFunc(s.accounts, func(a string) bool { return isAccount(u.Name, a) })
}

func isAccount(user, account string) bool {
	name, prefix := userOf(account)
	return user == name || prefix && strings.HasPrefix(user, name)
}

// userOf returns the user name of a service account, or the prefix of all in a namespace.
func userOf(account string) (name string, prefix bool) {
	namespace, of, _ := strings.Cut(account, "/")
	name = accountPrefix + namespace + ":"
	if of == "*" {
		return name, true
	}
	return name + of, false
}

// excludedByAll returns the users that every policy of an entry excludes: for the others some
// policy may have to answer.
func excludedByAll(all []*compiled) excluded {
	if len(all) == 0 {
		return excluded{}
	}
	first := all[0].exempt
	out := excluded{users: slices.Clone(first.users), groups: slices.Clone(first.groups),
		accounts: slices.Clone(first.accounts)}
	for _, c := range all[1:] {
		keep := func(list, of []string) []string {
			return slices.DeleteFunc(list, func(x string) bool { return !slices.Contains(of, x) })
		}
		out.users, out.groups, out.accounts = keep(out.users, c.exempt.users), keep(out.groups, c.exempt.groups),
			keep(out.accounts, c.exempt.accounts)
	}
	return out
}

// notExcluded is the CEL for a request of none of these users; "" if there are none.
func (s *excluded) notExcluded() string {
	parts := s.parts()
	for i := range parts {
		parts[i] = "!(" + parts[i] + ")"
	}
	return strings.Join(parts, " && ")
}

// included is the CEL for a request of one of them; "" if there are none.
func (s *excluded) included() string { return strings.Join(s.parts(), " || ") }

func (s *excluded) parts() []string {
	var parts []string
	if len(s.users) > 0 {
		parts = append(parts, "has(request.userInfo.username) && request.userInfo.username in "+celList(s.users))
	}
	if len(s.groups) > 0 {
		parts = append(parts, "has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in "+celList(s.groups)+")")
	}
	for _, a := range s.accounts {
		name, prefix := userOf(a)
		if prefix {
			parts = append(parts, "has(request.userInfo.username) && request.userInfo.username.startsWith("+celString(name)+")")
		} else {
			parts = append(parts, "has(request.userInfo.username) && request.userInfo.username == "+celString(name))
		}
	}
	return parts
}

// onlyThese returns the users whose requests any policy of an entry judges; nobody if one judges
// everyone's.
func onlyThese(all []*compiled) (out excluded) {
	for _, c := range all {
		if !c.forSome() {
			return excluded{}
		}
		out.users, out.groups = append(out.users, c.only.users...), append(out.groups, c.only.groups...)
		out.accounts = append(out.accounts, c.only.accounts...)
	}
	for _, list := range []*[]string{&out.users, &out.groups, &out.accounts} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return out
}

// notControllers is the CEL for a request that is not of Kubernetes' controllers, or about a
// resource for which they are judged, too.
func notControllers(judged []schema.GroupResource) string {
	said := "!(has(request.userInfo.username) && (request.userInfo.username in " + celList(controllerUsers) +
		" || request.userInfo.username.startsWith(" + celString(controllerPrefix) + ")))"
	if len(judged) == 0 {
		return said
	}
	return said + " || " + isAbout(judged)
}

// isAbout is the CEL for a request about one of some resources.
func isAbout(resources []schema.GroupResource) string {
	names := make([]string, len(resources))
	for i, gr := range resources {
		names[i] = gr.Group + "/" + gr.Resource
	}
	slices.Sort(names)
	return "(has(request.resource.group) ? request.resource.group : '') + '/' + request.resource.resource in " +
		celList(slices.Compact(names))
}

func celList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = celString(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// celString quotes a string for CEL: user names come from flags and may contain anything.
func celString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}

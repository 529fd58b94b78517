package e2e

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

// weirUser is who weir is in a cluster. The audit log knows it by this name.
const weirUser = "system:serviceaccount:weir-system:weir"

// identity makes a user that RBAC allows everything, and returns its kubeconfig.
func identity(ctx context.Context, p *plane.Plane, user string) (string, error) {
	return restricted(ctx, p, user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})
}

// restricted makes a user that has one ClusterRole.
func restricted(ctx context.Context, p *plane.Plane, user string, role rbacv1.RoleRef) (string, error) {
	_, kubeconfig, err := load.Bound(ctx, p, role.Name, user)
	return kubeconfig, err
}

// kubeconfigOf is that of a user whom RBAC allows everything.
func (w *fixture) kubeconfigOf(user string) string {
	w.Helper()
	kubeconfig, err := identity(context.WithoutCancel(w.Context()), w.plane, user)
	if err != nil {
		w.Fatal(err)
	}
	return kubeconfig
}

// impersonating is a client of the administrator who says to be another, in these groups.
func (w *fixture) impersonating(user string, groups ...string) dynamic.Interface {
	w.Helper()
	config := rest.CopyConfig(w.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

// as is a client that acts as a user who may do what rules say, in the fixture's
// namespace.
func (w *fixture) as(user string, rules ...rbacv1.PolicyRule) dynamic.Interface {
	w.Helper()
	w.grant(w.namespace, user, user, rules...)
	return w.impersonating(user)
}

// grant gives a user rights in a namespace, by a role, and waits until the API server knows of
// them.
func (w *fixture) grant(namespace, role, user string, rules ...rbacv1.PolicyRule) {
	w.Helper()
	name := metav1.ObjectMeta{Name: role}
	_, err := w.typed.RbacV1().Roles(namespace).Create(w.Context(), &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	if err == nil {
		_, err = w.typed.RbacV1().RoleBindings(namespace).Create(w.Context(), &rbacv1.RoleBinding{
			ObjectMeta: name,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	last := rules[len(rules)-1]
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: last.Verbs[0], Group: last.APIGroups[0], Resource: last.Resources[0]}}}
	w.until(user+" may do what was granted", func(ctx context.Context) (bool, error) {
		told, err := w.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && told.Status.Allowed, err
	})
}

// tryOwned makes a Secret with an owner by dryRun.
func (w *fixture) tryOwned(client dynamic.Interface, name string, r metav1.OwnerReference) error {
	w.Helper()
	k := w.kinds["sec"]
	manifest, err := k.manifest(name, []metav1.OwnerReference{r}, nil)
	if err != nil {
		w.Fatal(err)
	}
	_, err = client.Resource(k.gvr()).Namespace(w.namespace).Create(w.Context(), manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// mayDoSecrets are the rights that a dependent needs, without those about its owner.
var mayDoSecrets = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "update", "patch"}}

// roleWithout allows everything but one resource.
func (w *fixture) roleWithout(resource string) rbacv1.RoleRef {
	w.Helper()
	_, lists, err := w.typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		w.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all-but-" + resource}, Rules: []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		// A kind that has just been defined is served before discovery has all of its group.
		{APIGroups: []string{"weir.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			w.Fatal(err)
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{gv.Group}, Verbs: []string{"*"}}
		for _, r := range list.APIResources {
			rule.Resources = append(rule.Resources, r.Name)
		}
		rule.Resources = slices.DeleteFunc(rule.Resources, func(r string) bool { return r == resource })
		role.Rules = append(role.Rules, rule)
	}
	if _, err := w.typed.RbacV1().ClusterRoles().Create(w.Context(), role, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
}

package e2e

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// as is a client that acts as a user who may do what rules say, in the fixture's
// namespace.
func (w *fixture) as(user string, rules ...rbacv1.PolicyRule) dynamic.Interface {
	w.Helper()
	w.grant(w.namespace, user, user, rules...)
	config := rest.CopyConfig(w.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	return client
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

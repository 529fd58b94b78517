package e2e

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

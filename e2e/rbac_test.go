package e2e

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestKindThatWeirMayNotSeeIsNotItsToCollect: with everything granted but
// Secrets, all other kinds are collected in every way, and what refers to a
// Secret is kept.
func TestKindThatWeirMayNotSeeIsNotItsToCollect(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig, err := restricted(w.Context(), w.plane, weirUser, w.roleWithout("secrets"))
	if err != nil {
		t.Fatal(err)
	}
	w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig})
	w.make(`
		cm  boss
		cm  leaf       owners=(boss)
		sec secret     owners=(boss)
		cm  foreground
		cm  of-fg      owners=(foreground!block)
		cm  orphan
		cm  of-orphan  owners=(orphan)
		sec owner
		cm  of-secret  owners=(owner)
	`)
	delete(w.kinds, "sec")
	w.delete("boss", background)
	w.delete("foreground", foreground)
	w.delete("orphan", orphan)
	w.awaitGone("boss", "leaf", "foreground", "of-fg")
	// The right might be on its way, as while a cluster starts: for a minute the kind is one that fails.
	w.awaitOwners("of-orphan", "")
	w.mustBeThere("orphan")
	w.awaitGoneIn(2*patience, "orphan")
	m, err := w.weir.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Sum("weir_graph_kinds", "state", "forbidden"); n != 1 {
		t.Errorf("%.0f kinds are forbidden, want 1", n)
	}
	w.awaitEvent("of-secret", "OwnerRefUnresolvable")
	w.mustStay("secret", "of-orphan", "owner", "of-secret")
}

// roleWithout allows everything but one resource.
func (w *fixture) roleWithout(resource string) rbacv1.RoleRef {
	w.Helper()
	_, lists, err := w.typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		w.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all-but-" + resource}, Rules: []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
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

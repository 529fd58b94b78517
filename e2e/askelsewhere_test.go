//go:build full

package e2e

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// tenant is the kubeconfig of a user who may do anything in the fixture's namespace, and nothing anywhere else.
func (w *fixture) tenant(user string) string {
	w.Helper()
	_, kubeconfig, err := w.plane.UserConfig(user)
	if err != nil {
		w.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	if _, err := w.typed.RbacV1().RoleBindings(w.namespace).Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	return kubeconfig
}

// TestOwnerInAnotherNamespaceIsNamed: whoever asks about the dependent's namespace is told so, too; and whoever may not look elsewhere is
// told that it was not looked at.
func TestOwnerInAnotherNamespaceIsNamed(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{}) // what is there is not collected
	w.make("cm owner")
	inside := w.beside()
	inside.make(`
		sec here
		cm  stray  owners=(owner)
		cm  both   owners=(here, owner)
		cm  sound  owners=(here)
	`)
	ask := func(kubeconfig string, args ...string) (out, said string) {
		t.Helper()
		out, said, code := w.ask(kubeconfig, args...)
		if code != 0 {
			t.Fatalf("weir %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, said)
		}
		return out, said
	}
	in := " (an object with that uid is in the namespace " + w.namespace + ")"
	for _, scope := range [][]string{{"-A"}, {"-n", inside.namespace}} {
		out, said := ask(w.plane.Kubeconfig, append([]string{"orphans"}, scope...)...)
		w.mustSay(out, "configmaps/"+inside.namespace+"/stray: owner is gone: ConfigMap "+inside.namespace+"/owner"+in,
			"configmaps/"+inside.namespace+"/both: owned by Secret "+inside.namespace+"/here; not any more by ConfigMap "+inside.namespace+"/owner"+in)
		if strings.Contains(out, "sound") || said != "" {
			t.Errorf("orphans %v:\n%s%s", scope, out, said)
		}
	}
	for name, first := range map[string]string{
		"stray": "No owner that it names is in its namespace, and it is to be deleted",
		"both":  "Some of its owners are gone or going",
	} {
		w.mustSay(inside.mustAsk("why", "cm", name), first,
			`An owner that it names is in the namespace "`+w.namespace+`"; owners are looked for in its own only`, "Who has to act: who wrote the owner reference.")
	}
	tenant := inside.tenant("tenant")
	out, said := ask(tenant, "why", "cm", "stray", "-n", inside.namespace)
	w.mustSay(out, "Its owners are gone")
	w.mustSay(said, "incomplete: configmaps in other namespaces (an owner may be there) could not be read: ")
	if _, said := ask(tenant, "why", "cm", "sound", "-n", inside.namespace); strings.Contains(said, "other namespaces") {
		t.Errorf("of an object whose owner is there:\n%s", said)
	}
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trees are the names of the durable trees of what was in the fixture's namespace, or is it, by
// KIND NAME of their roots.
func (w *fixture) trees() map[string][]string {
	w.Helper()
	list, err := w.dynamic.Resource(deletedTrees).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string][]string{}
	for _, tree := range list.Items {
		root, _, _ := unstructured.NestedStringMap(tree.Object, "spec", "root")
		conditions, _, _ := unstructured.NestedSlice(tree.Object, "status", "conditions")
		durable := slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["status"] == "True" })
		if durable && (root["namespace"] == w.namespace || root["name"] == w.namespace) {
			name := root["kind"] + " " + root["name"]
			out[name] = append(out[name], tree.GetName())
		}
	}
	return out
}

// TestWhatAUserMayNotGrantIsToldBeforeARestore: RBAC says it only when a Role is written.
func TestWhatAUserMayNotGrantIsToldBeforeARestore(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	w.archives("")
	w.make("cm boss")
	w.applyText(fmt.Sprintf(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more",
		"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": %q}]},
		"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}`, w.mustKubectl("get", "cm", "boss", "-o", "jsonpath={.metadata.uid}")))
	w.delete("boss", background)
	w.awaitGone("boss")
	may := func(group, verbs string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Fields(verbs)}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "restores-" + w.namespace}, Rules: []rbacv1.PolicyRule{
		may("weir.dev", "get list", "deletedtrees", "archivechunks"), may("", "get", "secrets"),
		may("", "get list create", "configmaps"), may(rbacv1.GroupName, "get list create", "roles")}}
	if _, err := w.typed.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	user, err := restricted(t.Context(), w.plane, "restores-"+w.namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name})
	if err != nil {
		t.Fatal(err)
	}
	tree := w.trees()["ConfigMap boss"][0]
	restore := func(more ...string) string {
		out, said, _ := w.ask(user, append([]string{"restore", tree, "--weir-namespace", metav1.NamespaceSystem}, more...)...)
		return out + said
	}
	w.mustSay(restore("--plan"), "/more: you may not create it", "attempting to grant RBAC permissions not currently held")
	w.mustSay(restore(), "nothing was restored: you may not make roles.rbac.authorization.k8s.io/"+w.namespace+"/more")
	if out := w.mustKubectl("get", "cm", "boss", "--ignore-not-found", "-o", "name"); out != "" {
		t.Errorf("%s was restored", out)
	}
	w.mustSay(restore("--partial"), "restored configmaps/"+w.namespace+"/boss", "failed: roles.rbac.authorization.k8s.io/"+w.namespace+"/more: you may not create it")
}

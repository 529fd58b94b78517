package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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

// TestADeletedNamespaceIsBroughtBack: with all that was in it, of every kind, and its pods run again.
// Beside the built-in namespace controller, too, which deletes all of it at once.
func TestADeletedNamespaceIsBroughtBack(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [namespaces, configmaps]}]
    HERE
  archive: {retentionSeconds: 3600}
  failurePolicy: Fail`)
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  boss
			cm  below owners=(boss!block)
			sec keys  owners=(boss)
			cm  alone
		`)
		w.deployed("web")
		w.applyText(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}`)
		chart := func(data string) { // as Helm does
			w.applyText(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "chart"}, "data": `+data+`}`, "--server-side", "--field-manager=helm")
		}
		chart(`{"changed": "before", "dropped": "yes"}`)
		w.awaitDropped(w.drop())

		trees := w.trees()
		if len(trees) != 1 || len(trees["Namespace "+w.namespace]) != 1 {
			t.Fatalf("recorded: %v", trees)
		}
		tree := trees["Namespace "+w.namespace][0]
		if out, said, code := w.ask(w.plane.Kubeconfig, "restore", tree, "--weir-namespace", metav1.NamespaceSystem); code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, out, said)
		}
		there := w.mustKubectl("get", "cm,secrets,deployments,services", "-o", "name")
		for _, name := range []string{"configmap/alone", "configmap/below", "configmap/boss", "deployment.apps/web", "secret/keys", "service/web"} {
			if !slices.Contains(strings.Fields(there), name) {
				t.Errorf("%s is not there: %s", name, there)
			}
		}
		w.until("the pods of web run", func(context.Context) (bool, error) {
			phases, err := w.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}")
			return phases == "Running Running", err
		})
		owner := w.mustKubectl("get", "cm", "boss", "-o", "jsonpath={.metadata.uid}")
		for _, below := range []string{"cm/below", "secret/keys"} {
			if got := w.mustKubectl("get", below, "-o", "jsonpath={.metadata.ownerReferences[*].uid}"); got != owner {
				t.Errorf("%s refers to %q, and boss is %q", below, got, owner)
			}
		}
		chart(`{"changed": "after"}`)
		if data := w.mustKubectl("get", "cm", "chart", "-o", "jsonpath={.data}"); data != `{"changed":"after"}` {
			t.Errorf("what is applied as before has the data %s", data)
		}
	})
}

// TestALeafIsRecorded: what nothing depends on, each by itself, also where all of them are deleted
// in one request; and one that was there before the policy, and is deleted before it is prepared.
func TestALeafIsRecorded(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make("cm before")
		w.archives("")
		w.make(`
			cm one
			cm two
			cm three
		`)
		w.removeFinalizer("before")
		w.delete("one", background)
		err := w.typed.CoreV1().ConfigMaps(w.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.awaitGone("one", "two", "three", "before")
		got := w.trees()
		for _, name := range []string{"one", "two", "three", "before"} {
			if len(got["ConfigMap "+name]) != 1 {
				t.Errorf("%s: recorded %v", name, got)
			}
		}
	})
}

// TestObjectsOfADefinitionThatIsDeletedAreRecorded: each by itself, though the API server deletes
// them, and asks no webhook. The definition is not.
func TestObjectsOfADefinitionThatIsDeletedAreRecorded(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
		w.define(crd)
		w.policy("DeletionPolicy", fmt.Sprintf(`
  match:
    resources: [{apiGroups: [%s], resources: [%s]}]
    HERE
  archive: {retentionSeconds: 3600}
  failurePolicy: Fail`, crd.Spec.Group, crd.Spec.Names.Plural))
		w.awaitFinalizerAdded("widget")
		w.make("widget gear\nwidget wheel")
		w.undefine(crd)
		if got := w.trees(); len(got["Widget gear"]) != 1 || len(got["Widget wheel"]) != 1 {
			t.Errorf("recorded: %v", got)
		}
	})
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

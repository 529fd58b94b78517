package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// protectSecrets has a policy protect the Secrets of the namespace, and waits until it does. The policy has these further lines.
func (w *fixture) protectSecrets(lines ...string) {
	w.Helper()
	w.policy("DeletionPolicy", strings.Join(append([]string{`
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  protection: {confirmation: Required}`}, lines...), "\n  "))
	w.make("sec guarded")
	w.awaitRefusal("delete", "secret", "guarded")
}

// controller is a client of a controller of Kubernetes, whose own deletes no policy judges unless it says so.
func (w *fixture) controller() dynamic.Interface {
	w.Helper()
	return w.as("system:serviceaccount:kube-system:some-controller",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "patch", "delete"}})
}

// awaitReleased waits until an object has no owner any more, and tells why it was kept.
func (w *fixture) awaitReleased(name string) (why string) {
	w.Helper()
	w.until(name+" is released from its owners", func(context.Context) (bool, error) {
		o := w.get(name)
		why = o.GetAnnotations()["weir.dev/kept"]
		return len(o.GetOwnerReferences()) == 0 && why != "", nil
	})
	return why
}

// Who deletes an owner may be one whom no policy judges, or nobody at all. What is protected is judged when the collector comes for it, stays,
// and is released, so that no collector comes again and no owner waits for it.
func TestProtectedObjectsOutliveTheirOwners(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			cm  gone
			cm  waits
			cm  stays
			sec left   owners=(gone)
			sec awaited owners=(waits!block)
			sec both   owners=(gone, stays)
			sec agreed owners=(gone)
			cm  other  owners=(gone)
			sec dangling
		`)
		w.protectSecrets()
		w.mustKubectl("annotate", "secrets", "agreed", "--overwrite", "weir.dev/confirm-delete="+string(w.of("agreed").uid))
		w.mustSay(w.mustAsk("plan", "configmap/gone"), "- configmaps/gone", "- configmaps/other", "- secrets/agreed", "~ secrets/left", "~ secrets/both")
		controller := w.controller().Resource(w.kinds["cm"].gvr()).Namespace(w.namespace)
		for name, p := range map[string]metav1.DeletionPropagation{"gone": metav1.DeletePropagationBackground, "waits": metav1.DeletePropagationForeground} {
			if err := controller.Delete(w.Context(), w.of(name).name, metav1.DeleteOptions{PropagationPolicy: &p}); err != nil {
				t.Fatal(err)
			}
		}
		dead := w.of("gone").reference()
		dead.UID = "00000000-0000-0000-0000-00000000dead"
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{dead}}})
		if err != nil {
			t.Fatal(err)
		}
		w.patch("dangling", string(patch))
		w.awaitGone("gone", "waits", "agreed", "other")
		for _, name := range []string{"left", "awaited", "dangling"} {
			why := w.awaitReleased(name)
			if !strings.Contains(why, `kept, because a policy protects it: secrets "`+w.of(name).name+`" in namespace "`+w.namespace+`" may not be deleted without confirmation (DeletionPolicy "`) {
				t.Errorf("%s is kept because %s", name, why)
			}
			w.awaitEvent(name, "Kept")
		}
		w.mustSay(w.mustAsk("why", "secret/left"), "A policy kept it when its owners went, and Weir released it from them: owner is gone: ConfigMap "+w.namespace+"/gone")
		w.mustSay(w.mustAsk("orphans"), "A policy kept these when their owners went", "secrets/"+w.namespace+"/left: owner is gone", "secrets/"+w.namespace+"/awaited: owner is being deleted foreground")
		w.awaitOwners("both", "stays")
		w.alive("left", "awaited", "both", "dangling", "stays") // as no collector comes again, nothing has to be waited for
	})
}

// Who deletes what owns protected objects, or holds them, is refused where that is found out at once; and told no more than they may know.
func TestProtectedObjectsRefuseTheDeleteOfTheirOwners(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make(`
			cm  owner
			sec child   owners=(owner)
			cr  owns-a-secret
			sec of-role owners=(owns-a-secret)
		`)
		w.protectSecrets()
		w.awaitRefusal("delete", "configmap", "owner")
		w.mustRefuse([]string{"what is protected would be deleted with it: 1 secrets (child)", "kubectl annotate secrets child -n " + w.namespace}, "delete", "configmap", "owner")
		w.mustRefuse([]string{`namespaces "` + w.namespace + `" may not be deleted: what is protected would be deleted with it: 3 secrets (child, guarded, of-role)`}, "delete", "namespace", w.namespace)
		mallory := w.as("mallory-"+w.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "patch", "delete"}})
		err := mallory.Resource(w.kinds["cm"].gvr()).Namespace(w.namespace).Delete(w.Context(), w.of("owner").name, metav1.DeleteOptions{})
		if err == nil || !strings.Contains(err.Error(), "1 secrets (DeletionPolicy") {
			t.Errorf("who may not list Secrets is told: %v", err)
		}
		// Whoever may edit a Secret can name a ClusterRole as its owner: that must not hold up an administrator.
		said := w.mustKubectl("delete", "clusterrole", w.of("owns-a-secret").name)
		w.mustSay(said, "owns what is protected: that is not deleted with it, and is released from its owners: 1 secrets ("+w.namespace+"/of-role)")
		w.awaitReleased("of-role")
		w.mustKubectl("annotate", "secrets", "child", "--overwrite", "weir.dev/confirm-delete="+string(w.of("child").uid))
		w.mustKubectl("delete", "configmap", "owner")
		w.awaitGone("owner", "child")
	})
}

// The delete of a namespace is let through, and what it holds is protected afterwards: that stays, and so does the namespace, which says why.
func TestContentThatIsProtectedLateKeepsItsNamespace(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
    objectSelector: {matchLabels: {precious: "true"}}
  protection: {confirmation: Required}`)
		w.policy("DrainPolicy", `
  `+strings.TrimSpace(w.here())+`
  waves:
  - {name: maps, resources: [{apiGroups: [""], resources: [configmaps]}]}
  - {name: rest, resources: [{apiGroups: [""], resources: [secrets]}]}`)
		w.make(`
			cm  first finalizers=(example.com/hold)
			sec late
			sec other
		`)
		w.label("late", "precious", "true")
		w.awaitRefusal("delete", "secret", "late")
		w.label("late", "precious", "false")
		w.mustKubectl("delete", "namespace", w.namespace, "--wait=false")
		w.awaitTerminating("first")
		w.label("late", "precious", "true")
		w.unfinalize("first")
		w.awaitGone("first", "other")
		w.until("the namespace says what it waits for", func(ctx context.Context) (bool, error) {
			ns, err := w.typed.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			said, err := json.Marshal(ns.Status.Conditions)
			return strings.Contains(string(said), "late") && strings.Contains(string(said), "may not be deleted without confirmation"), err
		})
		w.alive("late")
		w.mustKubectl("annotate", "secrets", "late", "--overwrite", "weir.dev/confirm-delete="+string(w.of("late").uid))
		w.awaitGone("late")
	})
}

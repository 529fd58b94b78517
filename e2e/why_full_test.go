//go:build full

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// fault is something for which an object does not go.
type fault struct {
	name string
	// finalizers hold it, written by a manager; dependents are lines of objects that refer to OWNER; propagation is how it is deleted.
	finalizers  []string
	dependents  string
	propagation metav1.DeletionPropagation
	causes      []wanted
}

// faults are those that any object can have, and with each other. Webhooks and rights are those of newFaulty.
func faults(w *fixture) []fault {
	in := w.namespace + "/"
	hook := wanted{"who runs the admission webhook " + w.namespace + ".example.com", []string{
		"Weir's controller is refused at ConfigMap " + in + "refused-OWNER: ", "denied the request: not today", "the Event CollectionRefused on ConfigMap " + in + "refused-OWNER"}}
	return []fault{
		{name: "load balancer", finalizers: []string{"service.kubernetes.io/load-balancer-cleanup"}, causes: []wanted{{"the cloud's service controller", []string{
			"the finalizer service.kubernetes.io/load-balancer-cleanup holds it: ", "takes it off when the load balancer is deleted",
			"the Lease kube-system/cloud-controller-manager, by which its component says that it is there, does not exist"}}}},
		{name: "job tracking", finalizers: []string{"batch.kubernetes.io/job-tracking"}, causes: []wanted{{"kube-controller-manager (Job controller)", []string{
			"the finalizer batch.kubernetes.io/job-tracking holds it: ", "takes it off when the pod is counted in its Job's status"}}}},
		{name: "component gone", finalizers: []string{"example.com/gone"}, causes: []wanted{{"the component behind the finalizer example.com/gone", []string{
			"the finalizer example.com/gone holds it", `written by the field manager "vanished"`, `runs something that is named "vanished": the component may be gone`}}}},
		{name: "leaf held", dependents: "sec middle-OWNER owners=(OWNER!block)\ncm leaf-held-OWNER owners=(middle-OWNER!block) finalizers=(example.com/hold)", propagation: foreground,
			causes: []wanted{{"the component behind the finalizer example.com/hold", []string{
				"foreground deletion: it waits for configmaps/" + in + "leaf-held-OWNER", "configmaps/leaf-held-OWNER has the finalizer example.com/hold"}}}},
		{name: "leaf refused", dependents: "cm refused-OWNER owners=(OWNER!block)", propagation: foreground, causes: []wanted{hook,
			{"the garbage collector", []string{"foreground deletion: it waits for ", "configmaps/" + in + "refused-OWNER", " is not being deleted: "}}}},
		{name: "leaf not permitted", dependents: "limits may-not-OWNER owners=(OWNER!block)", propagation: foreground, causes: []wanted{
			{"the garbage collector", []string{"foreground deletion: it waits for ", "limitranges/" + in + "may-not-OWNER", " is not being deleted: "}},
			{"who grants the user " + weirUser + " its rights (RBAC)", []string{
				"Weir's controller is refused at LimitRange " + in + "may-not-OWNER: ", "the Event CollectionRefused on LimitRange " + in + "may-not-OWNER"}}}},
		{name: "orphaning refused", dependents: "cm refused-OWNER owners=(OWNER)", propagation: orphan, causes: []wanted{hook,
			{"the garbage collector", []string{"its dependents are being orphaned: configmaps/" + in + "refused-OWNER still refers to it"}}}},
	}
}

// weirAway is that of an object with Weir's finalizer while its controller does not run.
func weirAway() fault {
	return fault{name: "weir away", finalizers: []string{finalizer}, causes: []wanted{{"Weir's controller", []string{
		"the finalizer " + finalizer + " holds it: ", "the propagation of the policy is carried out", "the Lease weir-controller, by which its component says that it is there, was renewed "}}}}
}

// newFaulty is a cluster without controllers but Weir's, which may not delete LimitRanges, and is refused what is named so by a webhook.
func newFaulty(t *testing.T) (*fixture, *hook) {
	t.Helper()
	w := newCluster(t, plane.Options{})
	if err := installCRDs(w.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	role := w.roleWithout("limitranges")
	limited := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "see-limitranges"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"limitranges"}, Verbs: []string{"get", "list", "watch", "update", "patch"}}}}
	if _, err := w.typed.RbacV1().ClusterRoles().Create(w.Context(), limited, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := restricted(w.Context(), w.plane, weirUser, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: limited.Name}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := restricted(w.Context(), w.plane, weirUser, role)
	if err != nil {
		t.Fatal(err)
	}
	w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig, LeaderElect: true, Flags: []string{weir.NoBrake}})
	w.kinds["limits"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "LimitRange"}, resource: "limitranges", body: `spec: {limits: []}`}
	return w, w.newHook(false, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if strings.HasPrefix(r.Name, "refused-") {
			return refusal(403, 0)
		}
		return nil
	})
}

// suffer makes an object with faults, and deletes it.
func (w *fixture) suffer(name string, all ...fault) {
	w.Helper()
	w.make("sec " + name)
	var finalizers []string
	propagation := background
	for _, f := range all {
		finalizers = append(finalizers, f.finalizers...)
		if f.dependents != "" {
			lines := strings.ReplaceAll(f.dependents, "OWNER", name)
			w.make(lines)
			for line := range strings.Lines(lines) { // an owner does not wait for what no watch has told of
				dependent := string(w.of(strings.Fields(line)[1]).uid)
				w.until(line+" was seen", func(context.Context) (bool, error) { return w.inGraph(dependent), nil })
			}
		}
		if f.propagation != none {
			propagation = f.propagation
		}
	}
	if len(finalizers) > 0 {
		list := `"` + strings.Join(finalizers, `", "`) + `"`
		_, err := w.at(w.of(name)).Patch(w.Context(), name, types.MergePatchType, []byte(`{"metadata": {"finalizers": [`+list+`]}}`), metav1.PatchOptions{FieldManager: "vanished"})
		if err != nil {
			w.Fatal(err)
		}
	}
	w.delete(name, propagation)
}

// awaitWhy waits until why says each of some words, and nothing wrong.
func (w *fixture) awaitWhy(words []string, args ...string) (out string) {
	w.Helper()
	defer func() {
		if w.Failed() {
			w.Logf("weir why %s:\n%s", strings.Join(args, " "), out)
		}
	}()
	w.until(fmt.Sprintf("weir why %s says %q", strings.Join(args, " "), words), func(context.Context) (bool, error) {
		out = w.mustAsk(append([]string{"why"}, args...)...)
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(out, word) }), nil
	})
	return out
}

// TestWhyNamesFaultsOneAndTwoAtATime: with each fault, and each two that an object can have, each cause is told once, with who has to act, and
// no other is said to have to. It is so when it is told first, and still when all else has happened.
func TestWhyNamesFaultsOneAndTwoAtATime(t *testing.T) {
	t.Parallel()
	w, hook := newFaulty(t)
	var suffering []suffers
	suffer := func(name string, all ...fault) {
		t.Helper()
		w.suffer(name, all...)
		suffering = append(suffering, suffers{name, all})
		w.awaitCauses(suffering[len(suffering)-1])
	}
	all := faults(w)
	for i, a := range all {
		suffer(fmt.Sprintf("one-%d", i), a)
		for j, b := range all[:i] {
			if a.propagation != none && b.propagation != none && a.propagation != b.propagation {
				continue // a deletion has one
			}
			if a.dependents != "" && b.dependents != "" && strings.Fields(a.dependents)[1] == strings.Fields(b.dependents)[1] {
				continue
			}
			suffer(fmt.Sprintf("two-%d-%d", j, i), b, a)
		}
	}
	for _, s := range suffering {
		if wrong := w.wrongCauses(s); len(wrong) > 0 {
			t.Errorf("%s", strings.Join(wrong, "\n"))
		}
	}
	t.Logf("%d objects with one fault or two", len(suffering))
	hook.server.Close()
	silent := all[4]
	silent.name, silent.causes = "leaf's webhook does not answer", slices.Clone(silent.causes)
	silent.causes[0] = wanted{"who runs the admission webhook " + w.namespace + ".example.com, which does not answer", []string{"Weir's controller is refused at ConfigMap " + w.namespace + "/refused-OWNER: "}}
	suffer("silent", silent)
	w.weir.Kill()
	away := weirAway()
	suffer("away", away)
	for i, b := range all[:3] { // those with dependents would wait for it to begin
		suffer(fmt.Sprintf("away-%d", i), b, away)
	}
}

// TestWhyNamesFaultsOfKinds: what only some kinds have: claims, volumes, pods, definitions, namespaces, references, and policies.
func TestWhyNamesFaultsOfKinds(t *testing.T) {
	t.Parallel()
	w, _ := newFaulty(t)
	w.kinds["pvc"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, resource: "persistentvolumeclaims",
		body: `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`}
	w.kinds["user"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods",
		body: `spec: {nodeName: no-such-node, containers: [{name: c, image: c}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}`}
	w.kinds["node"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, resource: "nodes", cluster: true}
	w.kinds["runs"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods", body: `spec: {nodeName: node-1, containers: [{name: c, image: c}]}`}
	w.kinds["lb"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, resource: "services", body: `spec: {type: LoadBalancer, ports: [{port: 80}]}`}
	w.make(`
		pvc  data
		user db-0           finalizers=(batch.kubernetes.io/job-tracking)
		pv   disk           finalizers=(kubernetes.io/pv-protection, external-attacher/disk-example-com)
		lb   front          finalizers=(service.kubernetes.io/load-balancer-cleanup)
		cm   old
		cm   refused-stale  owners=(old)
		cm   guarded
		node node-1
		runs stopping
	`)
	w.bind("disk", "data")
	w.delete("stopping", background)
	w.delete("front", background)
	w.delete("data", background)
	w.delete("disk", background)
	w.delete("db-0", background)
	w.mustSay(w.awaitWhy([]string{"pods that use the claim: pods/db-0", "Who has to act: who runs pods/db-0."}, "pvc", "data"), "when no pod uses the claim")
	w.awaitWhy([]string{"when no claim is bound to the volume", "it is bound to persistentvolumeclaims/" + w.namespace + "/data", "pods that use the claim: pods/db-0",
		"the volume is detached from its node", "volumeattachments/attached attaches it to the node node-1", "Who has to act: the CSI driver's external-attacher."}, "pv", "disk")
	out := w.awaitWhy([]string{"takes it off when the pod is counted in its Job's status", "Who has to act: kube-controller-manager (Job controller).",
		"grace period", "the node that it runs on is not there any more"}, "pod", "db-0")
	if strings.Count(out, "is not there any more") != 1 {
		t.Errorf("the node has nothing to do with the finalizer:\n%s", out)
	}
	out = w.awaitWhy([]string{"Its grace period lasts for another ", "Who has to act: the kubelet of its node."}, "pod", "stopping")
	if strings.Contains(out, "is not there any more") || strings.Count(out, "Who has to act: ") != 1 {
		t.Errorf("its node is there, and nobody else has to act:\n%s", out)
	}
	w.awaitWhy([]string{"when the load balancer is deleted", "Who has to act: the cloud's service controller."}, "service", "front")

	w.delete("old", background) // what it owned may not be deleted
	w.awaitGone("old")
	w.create("cm", "old", nil)
	w.awaitWhy([]string{"Its owners are gone, and it is to be deleted", "there is configmaps/" + w.namespace + "/old, with the uid " + string(w.of("old").uid),
		"Who has to act: who runs the admission webhook " + w.namespace + ".example.com."}, "cm", "refused-stale")

	w.policyNamed("DeletionPolicy", "guard", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {confirmation: Required}`)
	w.awaitWhy([]string{"A policy refuses to have you delete it: ", `DeletionPolicy "guard"`, "Who has to act: you, by a confirmation."}, "cm", "guarded")

	w.cascadeIsRemembered()
	w.namespaceFaults()
}

// bind has a volume be bound to a claim, and attached to a node, as the controllers for that would.
func (w *fixture) bind(volume, claim string) {
	w.Helper()
	w.patch(volume, fmt.Sprintf(`{"spec": {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": %q, "name": %q, "uid": %q}}}`, w.namespace, claim, w.of(claim).uid))
	o := w.of(volume)
	if _, err := w.at(o).Patch(w.Context(), o.name, types.MergePatchType, []byte(`{"status": {"phase": "Bound"}}`), metav1.PatchOptions{}, "status"); err != nil {
		w.Fatal(err)
	}
	_, err := w.typed.StorageV1().VolumeAttachments().Create(w.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "attached"},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com", NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// cascadeIsRemembered: why tells of what is gone, because of what it went, and that its controller has made it again.
func (w *fixture) cascadeIsRemembered() {
	w.Helper()
	w.make(`
		rs  maker
		sec worker  owners=(maker*controller)
		sec below   owners=(worker)
	`)
	_, said, code := w.ask(w.plane.Kubeconfig, "why", "secret", "never", "-n", w.namespace)
	if code != 1 || !strings.Contains(said, `secrets "never" not found, and nothing is recorded of its deletion`) {
		w.Errorf("why of what never was: exit code %d, %s", code, said)
	}
	w.delete("worker", background)
	w.awaitGone("worker", "below")
	w.awaitEvent("worker", "Cascade")
	was := "1 object that it owned was deleted by garbage collection within 1s: 1 secrets"
	w.awaitWhy([]string{"secrets/" + w.namespace + "/worker is not there", "It was deleted ", was}, "secret", "worker")
	w.awaitWhy([]string{"secrets/" + w.namespace + "/below is not there", "because of Secret " + w.namespace + "/worker: " + was}, "secret", "below")
	w.create("sec", "worker", []metav1.OwnerReference{w.reference("maker*controller")})
	w.awaitWhy([]string{"is not being deleted", "Its controller ReplicaSet maker lives", "one of the same name was deleted: ", was}, "secret", "worker")
	w.create("sec", "maker-1", []metav1.OwnerReference{w.reference("maker*controller")})
	w.awaitWhy([]string{"ReplicaSet maker lives, which is likely to have been its controller, and has made secrets/"}, "secret", "maker-2")
}

// namespaceFaults are those of a namespace, all at a time, and of a definition.
func (w *fixture) namespaceFaults() {
	w.Helper()
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(crd)
	ends := w.beside()
	ends.make(`
		cm     held     finalizers=(example.com/hold)
		sec    other    finalizers=(example.com/other)
		limits kept
		widget one      finalizers=(example.com/widget)
	`)
	namespaces := w.typed.CoreV1().Namespaces()
	ns, err := namespaces.Get(w.Context(), ends.namespace, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/spec")
	if _, err = namespaces.Finalize(w.Context(), ns, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	if err := w.crds().Delete(w.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.awaitWhy([]string{"The definition waits for its instances: 1 " + crd.Name, "Who has to act: the component behind the finalizer example.com/widget."}, "crd", crd.Name)
	ends.drop()
	says := []string{
		"Who has to act: the component behind the finalizer example.com/hold.", "Who has to act: the component behind the finalizer example.com/other.",
		"Content is left in the namespace: 1 limitranges", "Who has to act: who grants the user " + weirUser + " its rights (RBAC).",
		"condition WeirDraining: Weir drains it: wave 2 of 2 (rest)",
		"The finalizer example.com/spec in its spec.finalizers holds it",
	}
	w.awaitWhy(says, "namespace", ends.namespace)
	unused, err := plane.FreePort()
	if err != nil {
		w.Fatal(err)
	}
	w.aggregate(unused)
	w.awaitWhy(append(says, "The APIService v1."+aggregated+" is not available", "Who has to act: who runs the API behind the APIService v1."+aggregated), "namespace", ends.namespace)
	w.mustSay(ends.mustAsk("pending"), "for the component behind the finalizer example.com/hold")
}

// TestWhyTellsWhatARealControllerHasMadeAgain: a ReplicaSet is deleted, and its Deployment's controller makes it again, with other pods.
func TestWhyTellsWhatARealControllerHasMadeAgain(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make("web front")
	sets := w.typed.AppsV1().ReplicaSets(w.namespace)
	set := func() (name string, uid types.UID, pods []string) {
		t.Helper()
		w.until("the ReplicaSet has its pods", func(ctx context.Context) (bool, error) {
			list, err := sets.List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil || list.Items[0].UID == uid {
				return false, err
			}
			name = list.Items[0].Name
			found, err := w.typed.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			pods = nil
			for i := range found.Items {
				if metav1.IsControlledBy(&found.Items[i], &list.Items[0]) && found.Items[i].DeletionTimestamp == nil {
					pods = append(pods, found.Items[i].Name)
				}
			}
			if len(pods) == 2 {
				uid = list.Items[0].UID
			}
			return len(pods) == 2, nil
		})
		return name, uid, pods
	}
	name, was, pods := set()
	if err := sets.Delete(w.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(background)}); err != nil {
		t.Fatal(err)
	}
	again, is, _ := set()
	if again != name || is == was {
		t.Fatalf("the controller made %s (%s), which was %s (%s)", again, is, name, was)
	}
	w.awaitWhy([]string{"is not being deleted", "Its controller Deployment front lives", "one of the same name was deleted: ", "2 pods"}, "replicaset", name)
	w.mustSay(w.mustAsk("why", "pod", pods[0]), "pods/"+w.namespace+"/"+pods[0]+" is not there", "because of ReplicaSet "+w.namespace+"/"+name, "2 pods",
		"ReplicaSet "+name+" lives, which is likely to have been its controller, and has made pods/"+name+"-")
	w.mustSay(w.mustAsk("history", "replicaset", name), "ReplicaSet "+w.namespace+"/"+name)
}

// TestNamespaceThatWasDrainedIsInTheHistory: where its Events cannot be, with how much went, and by whose request.
func TestNamespaceThatWasDrainedIsInTheHistory(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	other := w.beside()
	other.make(`
		cm  one
		cm  two
		sec three
	`)
	uid := other.drop()
	other.awaitDropped(uid)
	var out string
	w.until("it is recorded", func(context.Context) (bool, error) {
		out = w.mustAsk("history", "namespace", other.namespace)
		return !strings.Contains(out, "No cascade is recorded"), nil
	})
	w.mustSay(out, "Namespace "+other.namespace+": ", " objects in it were deleted (", " configmaps", "1 secrets", ") within ")
	w.mustSay(w.mustAsk("why", "namespace", other.namespace), "namespaces/"+other.namespace+" is not there", "It was deleted ")
}

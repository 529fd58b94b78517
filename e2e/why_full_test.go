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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// fault is something for which an object does not go.
type fault struct {
	name string
	// finalizers hold it, written by a manager; dependents are lines of objects that refer to
	// OWNER; propagation is how it is deleted.
	finalizers  []string
	dependents  string
	propagation metav1.DeletionPropagation
	causes      []wanted
}

// faults are those that any object can have, and with each other. Webhooks and rights are those of
// newFaulty.
func faults(w *fixture) []fault {
	in := w.namespace + "/"
	hook := func(more ...string) []wanted {
		return []wanted{{"whoever runs the admission webhook " + w.namespace + ".example.com", append(more,
			"Weir's controller is refused at ConfigMap "+in+"refused-OWNER: ", "denied the request: not today", "the Event CollectionRefused on ConfigMap "+in+"refused-OWNER")}}
	}
	return []fault{
		{name: "load balancer", finalizers: []string{"service.kubernetes.io/load-balancer-cleanup"}, causes: []wanted{{"the cloud's service controller", []string{
			"the finalizer service.kubernetes.io/load-balancer-cleanup holds it: ", "removes it when the load balancer is deleted",
			"the Lease kube-system/cloud-controller-manager, by which its component says that it is there, does not exist"}}}},
		{name: "job tracking", finalizers: []string{"batch.kubernetes.io/job-tracking"}, causes: []wanted{{"kube-controller-manager (Job controller)", []string{
			"the finalizer batch.kubernetes.io/job-tracking holds it: ", "removes it when the pod is counted in its Job's status"}}}},
		{name: "component gone", finalizers: []string{"example.com/gone"}, causes: []wanted{{"the component behind the finalizer example.com/gone", []string{
			"the finalizer example.com/gone holds it", `written by the field manager "vanished"`, `runs something that is named "vanished": the component may be gone`}}}},
		{name: "leaf held", dependents: "sec middle-OWNER owners=(OWNER!block)\ncm leaf-held-OWNER owners=(middle-OWNER!block) finalizers=(example.com/hold)", propagation: foreground,
			causes: []wanted{{"the component behind the finalizer example.com/hold", []string{
				"foreground deletion: it waits for configmaps/" + in + "leaf-held-OWNER", "configmaps/leaf-held-OWNER has the finalizer example.com/hold"}}}},
		{name: "leaf refused", dependents: "cm refused-OWNER owners=(OWNER!block)", propagation: foreground, causes: hook("foreground deletion: it waits for configmaps/"+in+"refused-OWNER", " is not being deleted: ")},
		{name: "leaf not permitted", dependents: "limits may-not-OWNER owners=(OWNER!block)", propagation: foreground, causes: []wanted{
			{"whoever grants the user " + weirUser + " its rights (RBAC)", []string{
				"foreground deletion: it waits for limitranges/" + in + "may-not-OWNER", " is not being deleted: ",
				"Weir's controller is refused at LimitRange " + in + "may-not-OWNER: ", "the Event CollectionRefused on LimitRange " + in + "may-not-OWNER"}}}},
		{name: "orphaning refused", dependents: "cm refused-OWNER owners=(OWNER)", propagation: orphan, causes: hook("its dependents are being orphaned: configmaps/" + in + "refused-OWNER still refers to it")},
	}
}

// weirAway is that of an object with Weir's finalizer while its controller does not run.
func weirAway() fault {
	return fault{name: "weir away", finalizers: []string{finalizer}, causes: []wanted{{"Weir's controller", []string{
		"the finalizer " + finalizer + " holds it: ", "the propagation of the policy is carried out", "the Lease weir-controller, by which its component says that it is there, was renewed "}}}}
}

// newFaulty is a cluster without controllers but Weir's, which may not delete LimitRanges, and is
// refused what is named so by a webhook.
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

// TestWhyNamesFaultsOneAndTwoAtATime: with each fault, and each two that an object can have, each
// cause is told once, with who has to act, and no other is said to have to. It is so when it is
// told first, and still when all else has happened.
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
	silent.causes[0] = wanted{"whoever runs the admission webhook " + w.namespace + ".example.com, which does not answer", []string{"Weir's controller is refused at ConfigMap " + w.namespace + "/refused-OWNER: "}}
	suffer("silent", silent)
	w.weir.Kill()
	away := weirAway()
	suffer("away", away)
	for i, b := range all[:3] { // those with dependents would wait for it to begin
		suffer(fmt.Sprintf("away-%d", i), b, away)
	}
}

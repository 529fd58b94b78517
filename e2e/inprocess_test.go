package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// mustBeRefused is kubectl that is refused with words of Weir's.
func (w *fixture) mustBeRefused(says string, args ...string) {
	w.Helper()
	if out, err := w.kubectl(args...); err == nil || !strings.Contains(out, says) {
		w.Errorf("kubectl %s: %v: %s\nwhich does not say %q", strings.Join(args, " "), err, out, says)
	}
}

// written are Weir's ValidatingAdmissionPolicies that are bound, but for canaries.
func (w *fixture) written(ctx context.Context) (out []string, err error) {
	bindings, err := w.typed.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{LabelSelector: "weir.dev/in-process"})
	if err != nil {
		return nil, err
	}
	for _, b := range bindings.Items {
		if !strings.HasPrefix(b.Name, "weir-canary-") {
			out = append(out, b.Spec.PolicyName)
		}
	}
	return out, nil
}

// breakGlass does what the guard of the webhook configurations says, and waits until the API server
// has noticed.
func (w *fixture) breakGlass() {
	w.Helper()
	w.mustKubectl("delete", "validatingadmissionpolicybinding", "weir-guard")
	w.until("the API server judges by the guard no more", func(context.Context) (bool, error) {
		_, err := w.kubectl("delete", "validatingwebhookconfiguration", "weir", "--dry-run=server")
		return err == nil, nil
	})
}

// TestWhatTheAPIServerJudgesHoldsWhileWeirIsAway: nothing of Weir runs, and the API server begins
// anew.
func TestWhatTheAPIServerJudgesHoldsWhileWeirIsAway(t *testing.T) {
	t.Parallel()
	w, p := newPaired(t, companion, plane.Options{Controllers: plane.All})
	p.controller.Kill()
	controller, err := startController(context.WithoutCancel(t.Context()), w.plane, companion, p.url, "--test-in-process-overlap=0s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(controller.Kill)
	selected := func(label string) string {
		return "  match: {resources: [{apiGroups: [''], resources: [configmaps, replicationcontrollers]}], HERE, objectSelector: {matchLabels: {" + label + "}}}\n" +
			"  protection: {confirmation: Required}\n"
	}
	confirmed := w.policy("DeletionPolicy", selected("another: label"))
	owners := w.policy("OwnerReferencePolicy", "  match: {resources: [{apiGroups: [''], resources: [configmaps]}], HERE}\n  blockOwnerDeletion: Deny\n")
	spaces := "deletionpolicy-all-" + w.namespace
	w.policyNamed("DeletionPolicy", spaces, "  match: {resources: [{apiGroups: [''], resources: [replicationcontrollers]}], HERE}\n  propagation: {allowed: [Foreground]}\n")
	w.awaitCondition("OwnerReferencePolicy", owners, "InProcess", metav1.ConditionTrue)
	w.awaitCondition("DeletionPolicy", spaces, "InProcess", metav1.ConditionTrue)

	// A policy that changes.
	w.mustKubectl("patch", "delpol", confirmed, "--type=merge", "-p", `{"spec":{"match":{"objectSelector":{"matchLabels":{"another":null,"keep":"yes"}}}}}`)
	w.until("the new selector is judged", func(context.Context) (bool, error) {
		c := w.awaitCondition("DeletionPolicy", confirmed, "InProcess", metav1.ConditionFalse)
		return c.Reason == "Partial", nil
	})
	w.make(`
		cm  boss
		cm  plain
		rc  web
		rc  set
	`)
	w.mustKubectl("label", "configmap", "boss", "keep=yes")
	w.mustKubectl("label", "rc", "web", "keep=yes")
	w.until("less comes to the webhook", func(ctx context.Context) (bool, error) {
		c, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(c.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
			return h.Name == "left.delete.weir.dev"
		}), err
	})
	w.mustBeRefused("may not be deleted without confirmation", "delete", "configmap", "boss")
	controller.Kill()
	p.hook.Kill()
	says := "then kubectl delete validatingadmissionpolicybinding weir-guard"
	w.mustBeRefused(says, "delete", "validatingwebhookconfiguration", "weir")
	w.mustBeRefused(says, "delete", "--raw", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")
	w.mustBeRefused(says, "patch", "validatingwebhookconfiguration", "weir", "--type=merge", "-p", `{"webhooks":null}`)
	w.mustKubectl("annotate", "validatingwebhookconfiguration", "weir", "note=mine")
	w.breakGlass()
	w.mustKubectl("delete", "validatingwebhookconfiguration", "weir")

	unconfirmed := "may not be deleted without confirmation. To delete it, confirm and delete again: kubectl annotate"
	check := func() {
		t.Helper()
		w.mustBeRefused(unconfirmed, "delete", "configmap", "boss")
		w.mustBeRefused(unconfirmed, "delete", "--raw", "/api/v1/namespaces/"+w.namespace+"/configmaps?labelSelector=keep")
		w.mustBeRefused("may not be updated without confirmation: it would no longer be protected", "label", "configmap", "boss", "keep-")
		w.mustBeRefused("may not be updated without confirmation: it would no longer be protected", "patch", "rc", "web", "--subresource=status", "--type=merge", "-p", `{"metadata":{"labels":{"keep":null}}}`)
		w.mustBeRefused("may not be deleted with propagation policy Orphan", "delete", "rc", "set", "--cascade=orphan")
		w.mustBeRefused("may not block the deletion of its owner", "patch", "configmap", "plain", "--type=merge", "-p",
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"boss","uid":"`+string(w.of("boss").uid)+`","blockOwnerDeletion":true}]}}`)
	}
	check()
	if err := w.plane.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.until("the API server judges again", func(context.Context) (bool, error) {
		_, err := w.kubectl("delete", "configmap", "boss", "--dry-run=server")
		return err != nil, nil
	})
	check()
	w.mustKubectl("delete", "configmap", "plain") // which has neither labels nor annotations

	// A namespace that terminates keeps what is protected, and goes when that is confirmed.
	uid := w.drop()
	w.awaitGone("set")
	w.until("the namespace says what it waits for", func(context.Context) (bool, error) {
		out, err := w.kubectl("get", "namespace", w.namespace, "-o", "jsonpath={.status.conditions[*].message}")
		return strings.Contains(out, unconfirmed), err
	})
	w.alive("boss", "web")
	w.mustKubectl("annotate", "configmap", "boss", "weir.dev/confirm-delete="+string(w.of("boss").uid))
	w.mustKubectl("annotate", "rc", "web", "weir.dev/confirm-delete="+string(w.of("web").uid))
	w.awaitDropped(uid)

	// What the next Weir finds it takes away with the policies.
	next, err := startPair(context.WithoutCancel(t.Context()), w.plane, companion)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.controller.Kill)
	t.Cleanup(next.hook.Kill)
	w.mustKubectl("delete", "delpol", spaces)
	gone := "weir-deletionpolicy-" + spaces
	w.until(gone+" is gone", func(ctx context.Context) (bool, error) {
		written, err := w.written(ctx)
		return len(written) > 0 && !slices.Contains(written, gone), err
	})
	w.until("the webhook configurations are guarded again", func(context.Context) (bool, error) {
		out, err := w.kubectl("delete", "validatingwebhookconfiguration", "weir", "--dry-run=server")
		return err != nil && strings.Contains(out, says), nil
	})
	next.controller.Kill()
	kubeconfig := w.kubeconfigOf(weirUser)
	r := w.release(kubeconfig, "--force")
	if left, err := w.written(t.Context()); err != nil || len(left) > 0 || r.err != "" {
		t.Errorf("weir release leaves %v, %v: %s\n%s", left, err, r.err, r.log)
	}
}

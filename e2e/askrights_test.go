//go:build full

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWhoMayNotReadAllIsToldWhatIsMissing: once, at the end, and is answered as far as the rest goes: what is looked at besides lists, and
// what policies rest on.
func TestWhoMayNotReadAllIsToldWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	if err := installCRDs(w.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	w.kinds["user"] = kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods",
		body: `spec: {nodeName: no-such-node, containers: [{name: c, image: c}]}`}
	w.make(`
		user pod   finalizers=(service.kubernetes.io/load-balancer-cleanup, example.com/hold)
		cm   boss
	`)
	w.delete("pod", background)
	tenant := w.tenant("tenant")
	out, said, code := w.ask(tenant, "why", "pod", "pod", "-n", w.namespace)
	w.mustSay(out, "The finalizer example.com/hold holds it")
	if code != 0 || strings.Contains(out, "not there any more") {
		t.Errorf("exit code %d, and of a node that may not be looked at:\n%s", code, out)
	}
	for _, what := range []string{"nodes no-such-node", "workloads of all namespaces", "the Lease kube-system/cloud-controller-manager", "deletionpolicies.weir.dev"} {
		if n := strings.Count(said, "incomplete: "+what); n != 1 {
			t.Errorf("%d lines about %s:\n%s", n, what, said)
		}
	}

	w.policyNamed("DeletionPolicy", "guard", "  match:\n    resources: [{apiGroups: [\"\"], resources: [configmaps]}]\n    HERE\n  protection: {confirmation: Required, inCascades: Ignore}\n")
	blind, err := restricted(w.Context(), w.plane, "blind", w.roleWithout("namespaces"))
	if err != nil {
		t.Fatal(err)
	}
	missing := `the namespace "` + w.namespace + `", by whose labels policies select, could not be read: `
	out, said, code = w.ask(blind, "plan", "cm", "boss", "-n", w.namespace, "--exit-code")
	w.mustSay(out, "? configmaps/"+w.namespace+"/boss: whether a policy refuses the delete is not known: "+missing, "- configmaps/boss",
		"? "+missing, "Plan: 1 object is deleted.", "Incomplete: ")
	if code != 3 {
		t.Errorf("exit code %d, want 3\n%s%s", code, out, said)
	}
	out, said, code = w.ask(blind, "why", "cm", "boss", "-n", w.namespace)
	w.mustSay(out, "Nothing owns it")
	if n := strings.Count(said, "incomplete: "+missing); n != 1 || code != 0 {
		t.Errorf("exit code %d, %d lines about the namespace:\n%s%s", code, n, out, said)
	}
}

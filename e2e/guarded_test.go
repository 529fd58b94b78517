package e2e

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"
)

// protectSecrets has a policy protect the Secrets of the namespace, and waits until it does. The
// policy has these further lines.
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

// controller is a client of a controller of Kubernetes, whose own deletes no policy judges unless
// it says so.
func (w *fixture) controller() dynamic.Interface {
	w.Helper()
	return w.as("system:serviceaccount:kube-system:some-controller",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "patch", "delete"}})
}

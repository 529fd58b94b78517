//go:build full

package e2e

import (
	"errors"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestMetricsAreForThoseWhoMaySeeThem: as weir is run by default.
func TestMetricsAreForThoseWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig := w.kubeconfigOf(weirUser)
	p := w.runWeir(weir.Options{Kubeconfig: kubeconfig, SecureMetrics: true})
	allowed, denied := w.token("allowed"), w.token("denied")
	w.allowPaths("allowed", "/metrics")

	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"nobody":  {"", http.StatusUnauthorized},
		"denied":  {denied, http.StatusForbidden},
		"allowed": {allowed, http.StatusOK},
		// controller-runtime takes a token that is none for a failure of the
		// API server to judge it.
		"stranger": {"eyJhbGciOiJub25lIn0.e30.", http.StatusInternalServerError},
	} {
		_, err := p.Get(t.Context(), "/metrics", c.token)
		code := http.StatusOK
		var status *weir.StatusError
		if errors.As(err, &status) {
			code = status.Code
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.want {
			t.Errorf("%s asks for metrics: %d, want %d", name, code, c.want)
		}
	}
}

// token makes a ServiceAccount, and returns what it shows to say who it is.
func (w *fixture) token(account string) string {
	w.Helper()
	accounts := w.typed.CoreV1().ServiceAccounts(w.namespace)
	if _, err := accounts.Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	request, err := accounts.CreateToken(w.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return request.Status.Token
}

// allowPaths lets a ServiceAccount read paths that are no resources.
func (w *fixture) allowPaths(account string, paths ...string) {
	w.Helper()
	meta := metav1.ObjectMeta{Name: account + "-" + w.namespace}
	_, err := w.typed.RbacV1().ClusterRoles().Create(w.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, err = w.typed.RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

//go:build full

package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

func TestGraphOfAnObjectIsWhatHangsTogetherWithIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm leaf   owners=(boss!block)
		cm other
		cm apart  owners=(other)
	`)
	w.settle()
	page := func(query string) string {
		text, err := w.weir.Get(t.Context(), graphPath+query, "")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	boss, leaf, other := string(w.of("boss").uid), string(w.of("leaf").uid), string(w.of("other").uid)
	for _, uid := range []string{boss, leaf} {
		text := page("?uid=" + uid)
		if !strings.HasPrefix(text, "strict digraph") {
			t.Errorf("that is no graph: %.100s", text)
		}
		for _, want := range []string{boss, leaf, w.namespace} {
			if !strings.Contains(text, want) {
				t.Errorf("the graph of %s does not show %s:\n%s", uid, want, text)
			}
		}
		if strings.Contains(text, other) {
			t.Errorf("the graph of %s shows %s, which has nothing to do with it", uid, other)
		}
	}
	if text := page("?uid=" + boss + "&uid=" + other); !strings.Contains(text, other) || !strings.Contains(text, leaf) {
		t.Errorf("the graph of two shows not both:\n%s", text)
	}
	if text := page("?uid=nobody"); strings.Contains(text, w.namespace) {
		t.Errorf("the graph of nobody shows somebody:\n%s", text)
	}
	if text := page(""); !strings.Contains(text, boss) || !strings.Contains(text, other) {
		t.Error("the whole graph lacks a part")
	}
}

// TestGraphAndMetricsAreForThoseWhoMaySeeThem: as weir is run by default.
func TestGraphAndMetricsAreForThoseWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig := w.kubeconfigOf(weirUser)
	p := w.runWeir(weir.Options{Kubeconfig: kubeconfig, SecureMetrics: true})
	w.make(`cm boss`)
	allowed, denied := w.token("allowed"), w.token("denied")
	w.allowPaths("allowed", "/metrics", graphPath)

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
		for _, path := range []string{"/metrics", graphPath, graphPath + "?uid=" + string(w.of("boss").uid)} {
			_, err := p.Get(t.Context(), path, c.token)
			code := http.StatusOK
			var status *weir.StatusError
			if errors.As(err, &status) {
				code = status.Code
			} else if err != nil {
				t.Fatal(err)
			}
			if code != c.want {
				t.Errorf("%s asks for %s: %d, want %d", name, path, code, c.want)
			}
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

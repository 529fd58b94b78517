//go:build full

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestAQuestionIsOneListAKind: of the object's namespace only, where it is in one, and of nothing twice. APIServices, which are in none, say which
// kinds have a storage of their own.
func TestAQuestionIsOneListAKind(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.make(`
		cm  boss
		cm  leaf  owners=(boss)
		cr  role
	`)
	for _, c := range []struct {
		user       string
		args       []string
		everywhere bool
	}{
		{"asks-plan", []string{"plan", "configmap", "boss"}, false},
		{"asks-why", []string{"why", "configmap", "leaf"}, false},
		{"asks-tree", []string{"tree", "clusterrole", w.made["role"].name}, true},
		{"asks-pending", []string{"pending", "-A"}, true},
	} {
		kubeconfig, err := restricted(w.Context(), w.plane, c.user, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})
		if err != nil {
			t.Fatal(err)
		}
		args := c.args
		if !c.everywhere {
			args = append(args, "-n", w.namespace)
		}
		if out, said, code := w.ask(kubeconfig, args...); code != 0 {
			t.Fatalf("weir %s: %d\n%s%s", strings.Join(args, " "), code, out, said)
		}
		var lists map[string]int
		w.until("the audit log has the lists", func(context.Context) (bool, error) {
			lists = w.lists(c.user)
			_, clusterRoles := lists["clusterroles.rbac.authorization.k8s.io "]
			return lists["configmaps "+w.namespace]+lists["configmaps "] > 0 && lists["secrets "+w.namespace]+lists["secrets "] > 0 && clusterRoles == c.everywhere, nil
		})
		for what, n := range lists {
			kind, namespace, _ := strings.Cut(what, " ")
			if n > 1 {
				t.Errorf("weir %s: %d lists of %s", strings.Join(args, " "), n, what)
			}
			if !c.everywhere && namespace != w.namespace && kind != "apiservices.apiregistration.k8s.io" {
				t.Errorf("weir %s: a list of %s in all the cluster", strings.Join(args, " "), kind)
			}
		}
		if len(lists) < 10 {
			t.Errorf("weir %s: only %d lists: %v", strings.Join(args, " "), len(lists), lists)
		}
	}
}

// lists are those that a user has asked for, by kind and namespace.
func (w *fixture) lists(user string) map[string]int {
	w.Helper()
	f, err := os.Open(w.plane.AuditLog)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.User.Username == user && r.Verb == "list" {
			name := r.Object.Resource
			if r.Object.Group != "" {
				name += "." + r.Object.Group
			}
			counts[name+" "+r.Object.Namespace]++
		}
	}
	if err := lines.Err(); err != nil {
		w.Fatal(err)
	}
	return counts
}

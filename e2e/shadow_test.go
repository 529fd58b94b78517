package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// startShadow runs a weir that may read, and nothing else. It returns how to ask what it has found,
// as users do.
func (w *fixture) startShadow(flags ...string) (ask func(args ...string) (out, said string, code int)) {
	w.Helper()
	kubeconfig, err := w.reader()
	if err != nil {
		w.Fatal(err)
	}
	w.weir = w.runWeir(weir.Options{Kubeconfig: kubeconfig, LeaderElect: true, Flags: append([]string{"--mode", "shadow"}, flags...)})
	w.awaitSaid(w.weir, `"msg":"leading"`)
	var url string
	w.until("it says where it serves what it has compared", func(context.Context) (bool, error) {
		var err error
		url, err = w.weir.ServedAt()
		return url != "", err
	})
	return func(args ...string) (out, said string, code int) {
		w.Helper()
		return w.program(append([]string{"shadow", "--url", url}, args...)...)
	}
}

// reader is a kubeconfig of Weir that may read, and nothing else.
func (w *fixture) reader() (string, error) {
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}}
	if _, err := w.typed.RbacV1().ClusterRoles().Create(w.Context(), reader, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	return restricted(w.Context(), w.plane, weirUser, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name})
}

// awaitNothingOpen waits until all that was decided has come to an end.
func (w *fixture) awaitNothingOpen() {
	w.Helper()
	w.awaitMetrics("nothing is open", func(m weir.Metrics) bool {
		return m.Has("weir_shadow_decisions") && m.Sum("weir_shadow_decisions", "result", "open") == 0
	})
}

// TestShadowFindsThatTheBuiltInCollectorDoesTheSame and sends nothing that changes anything.
func TestShadowFindsThatTheBuiltInCollectorDoesTheSame(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.All})
	ask := w.startShadow()
	leaves := numbered("leaf", 50)
	w.make("cm boss")
	w.make(dependents("cm", leaves, "boss"))
	w.make(`
		sec  below       owners=(leaf-0)
		cm   foreground
		cm   held        owners=(foreground!block)
		cm   under-held  owners=(held!block)
		cm   orphaning
		cm   kept        owners=(orphaning)
		cm   one
		cm   two
		cm   of-both     owners=(one,two)
		cr   role
		cr   of-role     owners=(role)
		cm   by-hand     owners=(two)
	`)
	w.create("sec", "never-owned", []metav1.OwnerReference{ownerThatNeverWas()})
	w.delete("boss", background)
	w.delete("foreground", foreground)
	w.delete("orphaning", orphan)
	w.delete("one", background)
	w.delete("role", background)
	w.delete("by-hand", background)
	w.awaitGoneIn(collectorBegins, append(leaves, "boss", "below", "foreground", "held", "under-held", "orphaning", "one", "role", "of-role", "by-hand", "never-owned")...)
	w.awaitOwners("kept", "")
	w.awaitOwners("of-both", "two")
	w.awaitNothingOpen()
	w.mustStay("kept", "two", "of-both")

	out, said, code := ask("--gate", "1s")
	if code != 0 || !strings.Contains(out, "No difference.") {
		t.Errorf("exit code %d of kubectl weir shadow:\n%s%s", code, out, said)
	}
	t.Log(out)
	if out, said, code := ask("--gate", "24h"); code != 1 || !strings.Contains(said, "not for 24h0m0s yet") {
		t.Errorf("exit code %d of kubectl weir shadow --gate 24h:\n%s%s", code, out, said)
	}
	requests := w.auditOf(weirUser)
	if len(requests) < 50 {
		t.Errorf("the audit log has %d requests only", len(requests))
	}
	for _, r := range requests {
		if !slices.Contains([]string{"get", "list", "watch"}, r.Verb) {
			t.Errorf("weir sent %s %s %s", r.Verb, r.Object.Resource, r.Object.Name)
		}
	}
}

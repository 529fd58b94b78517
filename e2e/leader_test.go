package e2e

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestOneOfTwoWorksAndTheOtherTakesOver gives each weir a name of its own, by
// which the audit log tells who did what.
func TestOneOfTwoWorksAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	users := []string{"first", "second"}
	var replicas []*weir.Process
	for _, user := range users {
		kubeconfig := w.kubeconfigOf(user)
		replicas = append(replicas, w.runWeir(weir.Options{
			Name: user, Kubeconfig: kubeconfig, LeaderElect: true,
		}))
		w.weir = replicas[0]
		w.settle() // it leads, before there is another
	}
	cascade := func(boss string) []string {
		leaves := numbered(boss+"-leaf", 50)
		w.make("cm " + boss)
		w.make(dependents("cm", leaves, boss+"!block"))
		w.settle()
		w.delete(boss, foreground)
		return append(leaves, boss)
	}
	w.make(`cm staying`)

	led := cascade("before")
	w.awaitGone(led...)
	w.settle()
	w.awaitRequests("first", "delete", len(led)-1, led...)
	if diff := cmp.Diff(map[string]int{"delete": len(led) - 1, "patch": 1}, foregroundRequests(w, "first", led)); diff != "" {
		t.Errorf("requests of the leader (-want +have):\n%s", diff)
	}
	if have := w.requests("second"); len(have) != 0 {
		t.Errorf("requests of the one that does not lead: %v", have)
	}

	halfway := cascade("halfway")
	replicas[0].Kill()
	w.weir = replicas[1]
	w.awaitGone(halfway...)
	w.mustStay("staying")
	for _, name := range halfway[:50] { // that one is deleted by both is no error, that it is gone twice is
		gone := slices.DeleteFunc(append(w.audit("first"), w.audit("second")...), func(r request) bool {
			return r.Object.Name != name || r.Verb != "delete" || r.Status.Code != 200
		})
		if len(gone) > 1 {
			t.Errorf("%s was deleted %d times", name, len(gone))
		}
	}

	// A leader that is asked to leave gives the Lease back first.
	if err := replicas[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.weir = replicas[0]
	leaving := w.leader()
	if err := replicas[1].Stop(plane.DefaultGrace); err != nil {
		t.Error(err)
	}
	if err := replicas[1].Wait(); err != nil {
		t.Errorf("the leader that was asked to leave ended with: %v", err)
	}
	if holder := w.leader(); holder == leaving {
		t.Errorf("the leader that was asked to leave keeps the Lease: %s", holder)
	}
	w.awaitGone(cascade("after")...)
	w.mustStay("staying")
}

// leader is who holds the Lease; "" while nobody does.
func (w *fixture) leader() string {
	w.Helper()
	lease, err := w.typed.CoordinationV1().Leases(metav1.NamespaceSystem).Get(w.Context(), "weir-controller", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

//go:build full

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// rechecking is a plan that is kept, and checked after each change.
type rechecking struct {
	*fixture
	file string
	args []string
}

// keep makes the plan as a user, and keeps it.
func (r *rechecking) keep(kubeconfig string) {
	r.Helper()
	if out, said, code := r.ask(kubeconfig, append(r.args, "--out", r.file)...); code != 0 {
		r.Fatalf("weir %s: exit code %d\n%s%s", strings.Join(r.args, " "), code, out, said)
	}
}

// mustTell checks the plan, which is to end with a code and say some words.
func (r *rechecking) mustTell(kubeconfig string, want int, words ...string) {
	r.Helper()
	out, said, code := r.ask(kubeconfig, "plan", "--check", r.file, "--exit-code")
	if code != want || said != "" {
		r.Errorf("exit code %d, want %d\n%s%s", code, want, out, said)
	}
	r.mustSay(out, words...)
}

// TestCheckTellsAllInWhichAPlanHasChanged: what policies say, finalizers, kinds that cannot be read any more, roots that are gone or
// others; and its exit code is a plan's where nothing has.
func TestCheckTellsAllInWhichAPlanHasChanged(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{}) // what is there is not collected
	if err := installCRDs(w.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	blind, err := restricted(w.Context(), w.plane, "blind", w.roleWithout("secrets"))
	if err != nil {
		t.Fatal(err)
	}
	w.make(`
		cm  boss
		cm  leaf    owners=(boss)
		sec hidden  owners=(boss)
	`)
	admin, at := w.plane.Kubeconfig, "/"+w.namespace+"/"
	r := &rechecking{w, filepath.Join(t.TempDir(), "plan.json"), []string{"plan", "cm", "boss", "-n", w.namespace}}
	r.keep(admin)
	r.mustTell(admin, 0, "The plan is the same as before.\nPlan: 3 objects are deleted in 2 steps.")

	r.mustTell(blind, 4, "? secrets could not be read, and could before: ",
		"? secrets"+at+"hidden: is not in the plan any more, because its kind could not be read", "Incomplete: 1 of the kinds could not be read.")
	r.keep(blind)
	r.mustTell(blind, 3, "The plan is the same as before.", "Incomplete")
	r.mustTell(admin, 4, "+ secrets could be read, and could not before", "+ secrets"+at+"hidden: is new in the plan")

	r.keep(admin)
	w.patch("leaf", `{"metadata": {"finalizers": ["example.com/hold"]}}`)
	r.mustTell(admin, 4, "~ configmaps"+at+"leaf: waits for the finalizers example.com/hold now", "The plan has changed in 1 object.")
	r.keep(admin)
	r.mustTell(admin, 2, "The plan is the same as before.", "1 of them waits for finalizers")
	w.unfinalize("leaf")

	r.keep(admin)
	w.policyNamed("DeletionPolicy", "guard", "  match:\n    resources: [{apiGroups: [\"\"], resources: [configmaps]}]\n    HERE\n  protection: {confirmation: Required, inCascades: Ignore}\n")
	r.mustTell(admin, 4, "✗ configmaps"+at+"boss: a policy refuses the delete now: ", "The plan has changed in what policies say about 1 delete.", "Plan: policies refuse it")
	r.keep(admin)
	r.mustTell(admin, 2, "The plan is the same as before.")
	if err := w.dynamic.Resource(policyResources["DeletionPolicy"]).Delete(w.Context(), "guard", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.mustTell(admin, 4, "+ configmaps"+at+"boss: no policy refuses the delete any more")

	r.keep(admin)
	w.delete("boss", background)
	r.mustTell(admin, 4, "! configmaps"+at+"boss: is gone", "Plan: nothing is deleted.")
	w.make("cm boss")
	r.mustTell(admin, 4, "! configmaps"+at+"boss: is another object now: its uid is "+string(w.of("boss").uid), "Plan: 1 object is deleted.")

	held := &rechecking{w, filepath.Join(t.TempDir(), "held.json"), []string{"plan", "held/configmaps"}}
	held.keep(admin)
	held.mustTell(admin, 0, "The plan is the same as before.")
	w.make("sec more owners=(boss)")
	w.delete("boss", background)
	held.mustTell(admin, 4, "+ secrets"+at+"more: is new in the plan: is deleted", "The plan has changed in 1 object.")
}

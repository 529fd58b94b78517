package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// ask runs the plugin of kubectl as a user, and returns what it prints and its exit code.
func (w *fixture) ask(kubeconfig string, args ...string) (out, said string, code int) {
	w.Helper()
	return w.program(append(args, "--kubeconfig", kubeconfig, "--cache-dir", w.TempDir())...)
}

// program runs the plugin to its end.
func (w *fixture) program(args ...string) (out, said string, code int) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), shared.plugin, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			w.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return stdout.String(), stderr.String(), code
}

// mustAsk is ask as the administrator, about the fixture's namespace.
func (w *fixture) mustAsk(args ...string) string {
	w.Helper()
	out, said, code := w.ask(w.plane.Kubeconfig, append(args, "-n", w.namespace)...)
	if code != 0 {
		w.Fatalf("weir %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, said)
	}
	return out
}

// mustSay makes sure that each of some words is in what was printed.
func (w *fixture) mustSay(out string, words ...string) {
	w.Helper()
	for _, word := range words {
		if !strings.Contains(out, word) {
			w.Errorf("%q is not in\n%s", word, out)
		}
	}
}

// TestPlanTellsWhatADeleteDoes: and in what order, and changes nothing.
func TestPlanTellsWhatADeleteDoes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm other
		cm leaf-1  owners=(boss!block)
		cm leaf-2  owners=(boss!block)
		cm below   owners=(leaf-1)
		cm shared  owners=(boss, other)
		cm held    owners=(boss)        finalizers=(example.com/hold)
		cm after   owners=(held)
	`)
	names := []string{"boss", "other", "leaf-1", "leaf-2", "below", "shared", "held", "after"}
	versions := w.versions(names)
	out := w.mustAsk("plan", "configmap", "boss")
	want := `- configmaps/boss
  ! configmaps/held: waits until another component removes example.com/hold
    - configmaps/after: after that
  ~ configmaps/shared: kept: owned by ConfigMap ` + w.namespace + `/other; not any more by ConfigMap ` + w.namespace + `/boss
  - configmaps/leaf-1
    - configmaps/below
  - configmaps/leaf-2

Plan: 6 objects are deleted in 5 steps, 1 of them waits for finalizers that others remove, 1 is deleted only after that, 1 is kept and loses a reference.
`
	if out != want {
		t.Errorf("weir plan configmap boss:\n%s\nwant\n%s", out, want)
	}
	if _, said, code := w.ask(w.plane.Kubeconfig, "plan", "cm/boss", "-n", w.namespace, "--exit-code"); code != 2 || said != "" {
		t.Errorf("exit code %d, %q, want 2 and nothing more: something waits for a finalizer", code, said)
	}
	var plan struct {
		Kind   string
		Items  []struct{ Name, Outcome string }
		Totals struct{ Deleted, Released int }
	}
	if err := json.Unmarshal([]byte(w.mustAsk("plan", "cm", "boss", "--cascade=orphan", "-o", "json")), &plan); err != nil {
		t.Fatal(err)
	}
	if plan.Kind != "Plan" || plan.Totals.Deleted != 1 || plan.Totals.Released != 4 {
		t.Errorf("the plan of an orphaning delete: %+v", plan)
	}
	if now := w.versions(names); !slices.Equal(values(now, names), values(versions, names)) {
		t.Errorf("a plan has changed something: %v, and was %v", now, versions)
	}
	w.make("cm late owners=(boss)")
	w.delete("boss", background)
	w.awaitGone("boss", "leaf-1", "leaf-2", "below", "late")
	w.awaitOwners("shared", "other")
	w.mustBeThere("held", "after", "other")
	w.mustSay(w.mustAsk("why", "cm", "held"), "is being deleted", "The finalizer example.com/hold holds it")
	w.mustSay(w.mustAsk("pending"), "1 waits for the component behind the finalizer example.com/hold", "configmaps/"+w.namespace+"/held")
	w.unfinalize("held")
	w.awaitGone("held", "after")
	w.mustStay("other", "shared")
}

func values(of map[string]string, names []string) (out []string) {
	for _, n := range names {
		out = append(out, of[n])
	}
	return out
}

// TestWhatMayNotBeReadIsSaidToBeUnknown: with fewer rights, answers say what they lack, and never
// more than the user may see.
func TestWhatMayNotBeReadIsSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig, err := restricted(w.Context(), w.plane, "reader", w.roleWithout("secrets"))
	if err != nil {
		t.Fatal(err)
	}
	w.make(`
		cm  boss
		cm  leaf    owners=(boss)
		sec hidden  owners=(boss)
		sec owner
		cm  doubt   owners=(owner)
	`)
	out, _, code := w.ask(kubeconfig, "plan", "cm", "boss", "-n", w.namespace, "--exit-code")
	w.mustSay(out, "- configmaps/boss", "- configmaps/leaf", "? secrets could not be read: ", "Incomplete: 1 of the kinds could not be read.")
	if code != 3 || strings.Contains(out, "hidden") {
		t.Errorf("exit code %d, want 3, and not a word of what may not be listed:\n%s", code, out)
	}
	out, said, _ := w.ask(kubeconfig, "orphans", "-n", w.namespace)
	w.mustSay(out, "These are kept, because their owners cannot be determined:\n  configmaps/"+w.namespace+"/doubt")
	w.mustSay(said, "incomplete: secrets could not be read: ")

	w.aggregate(w.serveHanging())
	w.until("the API server knows that the API does not answer", func(ctx context.Context) (bool, error) {
		s, err := w.dynamic.Resource(apiServices).Get(ctx, "v1."+aggregated, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return len(conditionsOf(s)) > 0, nil
	})
	w.drop() // it is not drained here
	w.mustSay(w.mustAsk("why", "namespace", w.namespace), "is being deleted", "3 configmaps", "2 secrets")
}

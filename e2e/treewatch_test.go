//go:build full

package e2e

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"
)

// TestTreeIsDrawnAgainWhenItChanges: kubectl weir tree --watch, until the object is gone.
func TestTreeIsDrawnAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss  finalizers=(example.com/hold)
		cm leaf  owners=(boss)
	`)
	cmd := exec.CommandContext(t.Context(), shared.plugin, "tree", "configmap", "boss", "--watch", "-n", w.namespace,
		"--kubeconfig", w.plane.Kubeconfig, "--cache-dir", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var drawn []string
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			drawn = append(drawn, lines.Text())
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("it ended, and never drew %q:\n%s", text, strings.Join(drawn, "\n"))
	}
	until("configmaps/leaf")
	w.make("cm late owners=(boss)")
	until("configmaps/late")
	w.delete("boss", background)
	until("terminating")
	w.unfinalize("boss")
	until("boss is gone.")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: the object went, which is no failure", err)
	}
}

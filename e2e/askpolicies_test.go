//go:build full

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestPoliciesThatAreFilesAreShown: a policy that is a file of Weir's processes is nowhere in the cluster; who
// asks for policies sees it beside those that are objects, with what its status would say.
func TestPoliciesThatAreFilesAreShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(w *fixture, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	w, _ := newPaired(t, companion, plane.Options{}, "--policy-dir", dir)
	w.make("cm conf")
	object := w.policy("DrainPolicy", configsPodsRest)
	write(w, "a.yaml", w.confirmed("from-file", "configmaps", ""))
	write(w, "b.yaml", strings.Replace(w.confirmed("broken", "configmaps", ""), "Required", "Perhaps", 1))
	var out string
	shows := func(words ...string) bool {
		for line := range strings.Lines(out) {
			if fields := strings.Join(strings.Fields(line), " "); strings.HasPrefix(fields, strings.Join(words, " ")) {
				return true
			}
		}
		return false
	}
	w.until("all policies are shown", func(context.Context) (bool, error) {
		out = w.mustAsk("policies", "--weir-namespace", "kube-system")
		return shows("DrainPolicy", object, "object 3 waves True True") &&
			shows("DeletionPolicy from-file", filepath.Join(dir, "a.yaml"), "protection: Deny True True - 1") &&
			shows("DeletionPolicy broken", filepath.Join(dir, "b.yaml"), "protection: Deny False False"), nil
	})
	t.Log("\n" + out)
	if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	w.until("the file is gone", func(context.Context) (bool, error) {
		out = w.mustAsk("policies", "--weir-namespace", "kube-system")
		return !shows("DeletionPolicy broken") && shows("DeletionPolicy from-file"), nil
	})
	_, said, code := w.ask(w.plane.Kubeconfig, "policies", "--weir-namespace", "elsewhere")
	if code != 0 || !strings.Contains(said, "incomplete: policies that are files") {
		t.Errorf("in another namespace: exit code %d\n%s", code, said)
	}
}

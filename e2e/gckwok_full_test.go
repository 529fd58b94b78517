//go:build full

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestKwokWithoutControllersHasACollector: pods on a node of kwok go with their owner and with their
// namespace, beside weir gc alone. That is asked by the script of docs/testing-operators.md.
func TestKwokWithoutControllersHasACollector(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("install python3: the script of docs/testing-operators.md is Python")
	}
	w := newCluster(t, plane.Options{Kwok: true})
	dir, err := os.MkdirTemp("", "weir") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary directory that stays is no failure
	gc, err := weir.StartGC(t.Context(), weir.Options{Binary: shared.binary, Kubeconfig: w.plane.Kubeconfig, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gc.Kill)
	document, err := os.ReadFile("../docs/testing-operators.md")
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(string(document))
	idle := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, "-", filepath.Join(dir, "gc.sock"))
		cmd.Stdin = strings.NewReader(script[1])
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}

	w.make("cm owner\ncm stuck finalizers=(example.com/operator)")
	for name, owners := range map[string]string{"owned": fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": %q}`, w.of("owner").uid), "free": ""} {
		w.applyText(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "ownerReferences": [%s]}, "spec": {"nodeName": %q,
			"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "none"}]}}`, name, owners, plane.NodeName))
	}
	w.delete("owner", none)
	if said := idle(); said != "" {
		t.Errorf("waits: %s", said)
	}
	if pods := w.mustKubectl("get", "pods", "-o", "name"); pods != "pod/free\n" {
		t.Errorf("the pods are %q, want that without owners", pods)
	}
	uid := w.drop()
	if said, want := idle(), "configmaps stuck waits for example.com/operator\n"; said != want {
		t.Errorf("the script says %q, want %q", said, want)
	}
	w.unfinalize("stuck")
	idle()
	w.awaitDropped(uid)
}

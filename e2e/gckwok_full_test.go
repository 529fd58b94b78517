//go:build full

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	ctx, core := t.Context(), w.typed.CoreV1()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	owner, err = core.ConfigMaps(w.namespace).Create(ctx, owner, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name string, owners ...metav1.OwnerReference) {
		t.Helper()
		no, atOnce := false, int64(0)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}, Spec: corev1.PodSpec{
			NodeName: plane.NodeName, TerminationGracePeriodSeconds: &atOnce, AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: "c", Image: "none"}},
		}}
		if _, err := core.Pods(w.namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod("owned", *metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap")))
	pod("free")
	stuck := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stuck", Finalizers: []string{"example.com/operator"}}}
	if _, err := core.ConfigMaps(w.namespace).Create(ctx, stuck, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := core.ConfigMaps(w.namespace).Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if said := idle(); said != "" {
		t.Errorf("waits: %s", said)
	}
	if _, err := core.Pods(w.namespace).Get(ctx, "owned", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the owned pod: %v", err)
	}
	if _, err := core.Pods(w.namespace).Get(ctx, "free", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod without owners: %v", err)
	}
	if err := core.Namespaces().Delete(ctx, w.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if said, want := idle(), "configmaps stuck waits for example.com/operator\n"; said != want {
		t.Errorf("the script says %q, want %q", said, want)
	}
	w.mustKubectl("patch", "configmap", "stuck", "-n", w.namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	idle()
	if _, err := core.Namespaces().Get(ctx, w.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

//go:build full

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestAlertsAndPanelsAskForWhatProcessesTell: a controller and a webhook do a little of all that
// they do, and each query of the chart finds its series in what both tell of it, which is named as
// Prometheus wants it.
func TestAlertsAndPanelsAskForWhatProcessesTell(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.WithoutCollectors})
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	w.startHookAndController("--leader-elect", "--brake-most", "20")
	// What is told in companion mode only: for one whose canary is elsewhere the other weir is a
	// collector like any.
	kubeconfig := w.kubeconfigOf("companion")
	// A canary a minute: of many one after another the other would soon hold the next.
	companion := w.runWeir(weir.Options{Name: "companion", Kubeconfig: kubeconfig, Flags: []string{"--mode", "companion", "--leader-elect-namespace", metav1.NamespaceDefault, "--canary-time", "10s"}})

	w.policy("DeletionPolicy", `
  match: {resources: [{apiGroups: [""], resources: [configmaps]}], HERE}
  propagation: {default: Foreground}
`)
	w.policyNamed("DeletionPolicy", "fails", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
    matchConditions: [{name: no-such-label, expression: "oldObject.metadata.labels.none == 'x'"}]
  protection: {confirmation: Required}
`)
	w.awaitFinalizerAdded("cm")
	w.make(`
		cm boss
		cm leaf      owners=(boss)
		cm waits
		po for-this  owners=(waits!block) finalizers=(example.com/hold)
		cm of-secrets
	`)
	w.create("po", "stray", []metav1.OwnerReference{ownerThatNeverWas()})
	secrets := numbered("secret", 20)
	w.make(dependents("sec", secrets, "of-secrets"))
	w.delete("boss", background)
	w.awaitGone("boss", "leaf", "stray")
	w.delete("waits", foreground)
	hangs := make(chan struct{})
	release := sync.OnceFunc(func() { close(hangs) })
	w.serveHook(&hook{kind: "sec", decide: func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { <-hangs; return nil }})
	t.Cleanup(release)
	w.delete("of-secrets", background)
	w.awaitMetrics("secrets are put off", func(m weir.Metrics) bool { return m.Sum("weir_objects_put_off", "resource", "secrets") > 0 })
	for _, name := range []string{"weir_lookups_total", "weir_policies", "weir_backfill_objects", "weir_webhook_reachable"} {
		w.awaitMetrics(name+" is told", func(m weir.Metrics) bool { return m.Has(name) })
	}

	beside := *w
	beside.weir = companion
	beside.awaitMetricsIn(collectorBegins, "the other collector works", func(m weir.Metrics) bool { return m.Sum("weir_builtin_collector_alive") == 1 })

	shadow := w.runWeir(weir.Options{Name: "shadow", Kubeconfig: kubeconfig, Flags: []string{"--mode", "shadow"}})
	beside.weir = shadow
	// What went while the shadow was listing is not to be compared: so there is more of it, but not
	// as much as is held.
	var last time.Time
	beside.awaitMetrics("what the other does is compared", func(m weir.Metrics) bool {
		if now := time.Now(); now.Sub(last) > 6*time.Second {
			beside.create("po", fmt.Sprint("garbage-", now.UnixNano()), []metav1.OwnerReference{ownerThatNeverWas()})
			last = now
		}
		return m.Sum("weir_shadow_decisions", "result", "done")+m.Sum("weir_shadow_deletes", "result", "sooner") > 0
	})

	for i := range 21 {
		w.create("po", fmt.Sprint("held-", i), []metav1.OwnerReference{ownerThatNeverWas()})
	}
	w.awaitMetrics("something is held", func(m weir.Metrics) bool { return m.Has("weir_held_objects") })

	dir := t.TempDir()
	var args []string
	for job, process := range map[string]*weir.Process{"controller": w.weir, "webhook": w.hook, "companion": companion, "shadow": shadow} {
		text, err := process.Get(t.Context(), "/metrics", "")
		if err != nil {
			t.Fatal(err)
		}
		lint, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range lint {
			if strings.HasPrefix(p.Metric, "weir_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
		file := filepath.Join(dir, job)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, job+"="+file)
	}
	release()
	out, err := queries(t.Context(), args...)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// startHookAndController starts both as startPair does, and the controller with these flags as
// well.
func (w *fixture) startHookAndController(flags ...string) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	port, err := plane.FreePort()
	if err != nil {
		w.Fatal(err)
	}
	url := fmt.Sprintf("https://localhost:%d", port)
	kubeconfig := w.kubeconfigOf(hookUser)
	w.hook = w.runWeir(hookOptions(w.plane, kubeconfig, "hook", url, port))
	if w.weir, err = startController(ctx, w.plane, replace, url, flags...); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(w.weir.Kill)
}

// queries runs the test of the charts' module, which has Prometheus: the control plane must not be
// built with its versions.
func queries(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-v", "-run", "TestQueriesFindWhatProcessesTell", ".", "-args"}, args...)...)
	cmd.Dir = filepath.Join("..", "charts")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("ask the chart's queries: %w", err)
	}
	return out, err
}

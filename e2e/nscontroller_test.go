//go:build full

package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestCompanionTellsWhetherTheNamespaceControllerWorks by the namespaces that are deleted anyway: first it is off, then it is on.
func TestCompanionTellsWhetherTheNamespaceControllerWorks(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: "*,-namespace-controller"})
	const silent = 12 * time.Second
	w.startWeir("--mode", "companion", "--canary-time", (silent / 6).String())
	w.awaitMetricsIn(collectorBegins, "it leads", func(m weir.Metrics) bool { return m.Sum("weir_builtin_collector_alive") == 1 })
	first := w.beside()
	first.make("cm conf")
	uid := first.drop()
	alive := func(m weir.Metrics, want float64) bool {
		return len(m["weir_builtin_namespace_controller_alive"].GetMetric()) == 1 && m.Sum("weir_builtin_namespace_controller_alive") == want
	}
	w.awaitMetrics("the namespace controller is silent", func(m weir.Metrics) bool {
		return alive(m, 0) && m.Sum("weir_builtin_namespace_controller_oldest_seconds") >= silent.Seconds()
	})
	w.until("there is an Event on the namespace", func(context.Context) (bool, error) {
		return len(w.namespaceEvents(uid, "NamespaceControllerSilent")) > 0, nil
	})
	reads := slices.DeleteFunc(w.auditOf(weirUser), func(r request) bool {
		return r.Verb != "get" || r.Object.Resource != "namespaces" || r.Object.Name != first.namespace
	})
	if n := len(reads); n == 0 || n > int(silent.Seconds()) {
		t.Errorf("the namespace was read %d times in %s", n, silent)
	}
	w.until("weir doctor says so", func(context.Context) (bool, error) {
		out, code := w.doctor(w.plane.Kubeconfig)
		if code == 0 {
			return false, nil
		}
		w.mustFind(out, "problem namespace controller…none works: namespace "+first.namespace+" has been Terminating for")
		return true, nil
	})

	if err := w.plane.StopController(); err != nil {
		t.Fatal(err)
	}
	if err := w.plane.StartController(context.WithoutCancel(t.Context()), plane.All); err != nil {
		t.Fatal(err)
	}
	w.awaitMetricsIn(collectorBegins, "the namespace controller works", func(m weir.Metrics) bool { return alive(m, 1) })
	first.awaitDropped(uid)
	w.until("there is an Event that it works", func(context.Context) (bool, error) {
		return len(w.namespaceEvents(uid, "NamespaceControllerWorks")) > 0, nil
	})
	second := w.beside()
	second.awaitDropped(second.drop())
	w.awaitMetrics("both were measured", func(m weir.Metrics) bool {
		return m.Sum("weir_builtin_namespace_controller_lag_seconds", "step", "begin") == 2 && m.Sum("weir_builtin_namespace_controller_oldest_seconds") == 0
	})
}

//go:build full

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// doctor runs weir doctor.
func (w *fixture) doctor(kubeconfig string, flags ...string) (out string, code int) {
	w.Helper()
	return w.command(append([]string{"doctor", "--kubeconfig", kubeconfig, "-n", metav1.NamespaceSystem}, flags...)...)
}

// mustFind wants lines of a doctor that begin with a grade, and have what it is about, and all
// words.
func (w *fixture) mustFind(out string, want ...string) {
	w.Helper()
	for _, line := range want {
		grade, words, _ := strings.Cut(line, " ")
		found := false
		for have := range strings.Lines(out) {
			all := strings.HasPrefix(have, grade+" ")
			for word := range strings.SplitSeq(words, "…") {
				all = all && strings.Contains(have, strings.TrimSpace(word))
			}
			found = found || all
		}
		if !found {
			w.Errorf("%q is not in\n%s", line, out)
		}
	}
}

// TestDoctorSeesThatWeirWorksAlone by the canary, and does not take Weir for another collector.
// Policies that are not in force are named.
func TestDoctorSeesThatWeirWorksAlone(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	w.startWeir("--leader-elect")
	w.canary()
	w.policyNamed("DeletionPolicy", "broken", `
  match: {resources: [{apiGroups: [""], resources: [configmaps]}], matchConditions: [{name: none, expression: "no.such.thing"}]}
  protection: {confirmation: Required}
`)
	w.awaitCondition("DeletionPolicy", "broken", "Ready", metav1.ConditionFalse)
	// The canary counts once it has stood for half a minute.
	w.awaitMetrics("it leads", func(m weir.Metrics) bool {
		return m.Sum("weir_other_collector", "of", "garbage") == 0 && m.Has("weir_queue_oldest_seconds")
	})
	var out string
	w.awaitMetricsIn(2*patience, "the canary has stood", func(weir.Metrics) bool {
		out, _ = w.doctor(w.plane.Kubeconfig, "--mode", "replace", "--try")
		return strings.Contains(out, "none works but Weir (ConfigMap weir-collector-canary")
	})
	w.mustFind(out, "ok garbage collector…none works but Weir (ConfigMap weir-collector-canary has stood for", "ok controller…leads", "problem DeletionPolicy/broken…Valid is False (Invalid)")

	text, code := w.doctor(w.plane.Kubeconfig, "--mode", "replace", "-o", "json")
	var answer struct {
		Findings []struct{ About, Grade, Says, Do string }
		Facts    struct{ Mode string }
	}
	text, _, _ = strings.Cut(text, "\nError:")
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Findings) < 5 || answer.Facts.Mode != "replace" || code != 1 {
		t.Errorf("exit code %d, %v of\n%s", code, err, text)
	}
	left, err := w.typed.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cm := range left.Items {
		if strings.HasPrefix(cm.Name, "weir-doctor-") {
			t.Errorf("%s was left", cm.Name)
		}
	}
}

//go:build full

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestShadowTellsWhatNoCollectorDoes with the object and the reason, and that it was done later.
func TestShadowTellsWhatNoCollectorDoes(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	ask := w.startShadow("--shadow-late", "2s")
	w.make(`
		cm boss
		cm leaf  owners=(boss)
	`)
	w.delete("boss", background)
	w.awaitMetrics("there is a difference", func(m weir.Metrics) bool { return m.Sum("weir_shadow_differences") == 1 })
	w.awaitSaid(w.weir, "the cluster has not done what Weir would do", w.namespace+"/leaf", `"action":"delete"`)
	if w.get("leaf") == nil {
		t.Error("weir deleted it")
	}
	if err := w.plane.StartController(t.Context(), plane.CollectorOnly); err != nil {
		t.Fatal(err)
	}
	w.awaitGoneIn(collectorBegins, "leaf")
	w.awaitNothingOpen()

	var r shadowReport
	text, said, code := ask("-o", "json")
	if err := json.Unmarshal([]byte(text), &r); err != nil || code != 0 {
		t.Fatalf("exit code %d of kubectl weir shadow -o json: %v in\n%s%s", code, err, text, said)
	}
	if len(r.Differences) != 1 || r.Differences[0].What != "late" || r.Differences[0].Verb != "delete" || !strings.HasSuffix(r.Differences[0].Object, "/leaf") || r.Differences[0].Ended == "" {
		t.Errorf("differences: %+v", r.Differences)
	}
	if r.Decisions["delete"]["done"] != 1 || r.Decisions["delete"]["late"] != 1 {
		t.Errorf("decisions: %v", r.Decisions)
	}
	if out, said, code := ask("--gate", "1s"); code != 1 || !strings.Contains(said, "1 difference") || !strings.Contains(out, "owner is gone") {
		t.Errorf("exit code %d of kubectl weir shadow:\n%s%s", code, out, said)
	}
}

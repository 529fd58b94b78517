//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestWhatShadowModeFindsIsServedToThoseWhoMaySeeIt: on the metrics port to those who may get the
// path, and besides at an address of the machine, or of the pod, which kubectl weir shadow asks.
func TestWhatShadowModeFindsIsServedToThoseWhoMaySeeIt(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.All})
	kubeconfig, err := identity(t.Context(), w.plane, weirUser)
	if err != nil {
		t.Fatal(err)
	}
	p := w.runWeir(weir.Options{Kubeconfig: kubeconfig, SecureMetrics: true, Flags: []string{"--mode", "shadow"}})
	w.make("cm boss\ncm leaf owners=(boss)")
	allowed, metrics := w.token("allowed"), w.token("metrics")
	w.allowPaths("allowed", "/shadow")
	w.allowPaths("metrics", "/metrics", graphPath)
	w.delete("boss", background)
	w.awaitGoneIn(collectorBegins, "leaf")

	var served shadowReport
	w.until("the delete is told", func(ctx context.Context) (bool, error) {
		text, err := p.Get(ctx, "/shadow", allowed)
		if err == nil {
			err = json.Unmarshal([]byte(text), &served)
		}
		return err == nil && served.Decisions["delete"]["done"]+served.Deletes["sooner"] == 1, err
	})
	for name, c := range map[string]struct {
		token string
		want  int
	}{"nobody": {"", http.StatusUnauthorized}, "who may see metrics and the graph": {metrics, http.StatusForbidden}} {
		_, err := p.Get(t.Context(), "/shadow", c.token)
		if status := (*weir.StatusError)(nil); !errors.As(err, &status) || status.Code != c.want {
			t.Errorf("%s is answered %v, want %d", name, err, c.want)
		}
	}

	var url string
	w.until("it says where it serves the report", func(context.Context) (bool, error) {
		text, err := p.Output()
		said := regexp.MustCompile(`"kubectl weir shadow reads what is compared","url":"([^"]+)"`).FindStringSubmatch(text)
		if said != nil {
			url = said[1]
		}
		return said != nil, err
	})
	var out, said string
	var code int
	w.until("it has compared for a moment", func(context.Context) (bool, error) {
		out, said, code = w.ask(w.plane.Kubeconfig, "shadow", "--url", url, "--gate", "1ms")
		return code == 0, nil
	})
	if !strings.Contains(out, "Compared for ") || !strings.Contains(out, "No difference.") {
		t.Errorf("kubectl weir shadow says:\n%s%s", out, said)
	}
	if out, said, code = w.ask(w.plane.Kubeconfig, "shadow", "--url", url, "--gate", "24h"); code != 1 || !strings.Contains(said, "not for 24h0m0s yet") {
		t.Errorf("exit code %d of kubectl weir shadow --gate 24h:\n%s%s", code, out, said)
	}
	out, said, code = w.ask(w.plane.Kubeconfig, "shadow", "--url", url, "-o", "json")
	if err := json.Unmarshal([]byte(out), &served); code != 0 || err != nil || served.Decisions["delete"]["done"]+served.Deletes["sooner"] != 1 {
		t.Errorf("exit code %d of kubectl weir shadow -o json, %v:\n%s%s", code, err, out, said)
	}
	if out, said, code = w.ask(w.plane.Kubeconfig, "shadow"); code != 1 || !strings.Contains(said, "there is no controller of Weir in namespace weir-system") {
		t.Errorf("exit code %d of kubectl weir shadow where there is no pod:\n%s%s", code, out, said)
	}
	metricsURL := strings.Replace(p.URL, "https://", "http://", 1)
	if out, said, code = w.ask(w.plane.Kubeconfig, "shadow", "--url", metricsURL); code != 1 || !strings.Contains(said, "answers 400") {
		t.Errorf("exit code %d of kubectl weir shadow at the metrics port:\n%s%s", code, out, said)
	}
}

// TestShadowTellsWhatNoCollectorDoes with the object and the reason, and that it was done later.
func TestShadowTellsWhatNoCollectorDoes(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	read, path := w.startShadow("--shadow-late", "2s")
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
	w.weir.Stop(plane.DefaultGrace) //nolint:errcheck // what matters is the report, which it writes at its end

	r := read()
	if len(r.Differences) != 1 || r.Differences[0].What != "late" || r.Differences[0].Verb != "delete" || !strings.HasSuffix(r.Differences[0].Object, "/leaf") || r.Differences[0].Ended == "" {
		t.Errorf("differences: %+v", r.Differences)
	}
	if r.Decisions["delete"]["done"] != 1 || r.Decisions["delete"]["late"] != 1 {
		t.Errorf("decisions: %v", r.Decisions)
	}
	if out, code := w.command("shadow", path, "--gate", "1s"); code != 1 || !strings.Contains(out, "1 difference") || !strings.Contains(out, "owner is gone") {
		t.Errorf("exit code %d of weir shadow:\n%s", code, out)
	}
}

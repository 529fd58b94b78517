//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestWhatShadowModeFindsIsServedToThoseWhoMaySeeIt: on the metrics port to those who may get the path, and besides at an address of the
// machine, or of the pod, which kubectl weir shadow asks.
func TestWhatShadowModeFindsIsServedToThoseWhoMaySeeIt(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.All})
	kubeconfig, err := identity(t.Context(), w.plane, weirUser)
	if err != nil {
		t.Fatal(err)
	}
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := w.runWeir(weir.Options{Kubeconfig: kubeconfig, SecureMetrics: true, Flags: []string{"--mode", "shadow", "--shadow-address", address}})
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

	url := "http://" + address
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

// TestTheGateIsClosedByDeletesOnPurpose until they are accepted by their name: kube-controller-manager does not look at an object again in which
// another name is put to the uid of an owner that lives, and Weir does.
func TestTheGateIsClosedByDeletesOnPurpose(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.CollectorOnly})
	w.create("cm", "never-owned", []metav1.OwnerReference{ownerThatNeverWas()})
	w.awaitGoneIn(collectorBegins, "never-owned")
	_, path := w.startShadow("--shadow-late", "10s")
	w.make(`
		cm boss
		cm leaf  owners=(boss)
	`)
	w.settle()
	w.patch("leaf", fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"another","uid":%q}]}}`, w.of("boss").uid))
	w.awaitMetrics("there is a difference on purpose", func(m weir.Metrics) bool { return m.Sum("weir_shadow_differences_on_purpose") == 1 })
	w.weir.Stop(plane.DefaultGrace) //nolint:errcheck // what matters is the report, which it writes at its end

	const name = "references are judged whenever they change"
	out, code := w.command("shadow", path, "--gate", "1s")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	w.mustSay(out, "No difference but those on purpose.", "1: --accept '"+name+"'", "on purpose Weir would delete what the cluster keeps ("+name+"): configmaps "+w.namespace+"/leaf; to keep them")
	for accepted, want := range map[string]int{name: 0, "dependents written during foreground deletion are judged": 1} {
		if out, code := w.command("shadow", path, "--gate", "1s", "--accept", accepted); code != want {
			t.Errorf("exit code %d with --accept %q:\n%s", code, accepted, out)
		}
	}
	if out, said, code := w.ask(w.plane.Kubeconfig, "shadow", path, "--gate", "1s", "--accept", name); code != 0 {
		t.Errorf("exit code %d of kubectl weir shadow:\n%s%s", code, out, said)
	}
	if w.get("leaf") == nil {
		t.Error("the cluster has deleted it")
	}
}

// TestWhatTheCollectorMayNotDeleteIsADifferenceLikeAnother: who only reads does not see that a delete was refused. kubectl weir why --try does.
func TestWhatTheCollectorMayNotDeleteIsADifferenceLikeAnother(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.CollectorOnly})
	w.create("cm", "never-owned", []metav1.OwnerReference{ownerThatNeverWas()})
	w.awaitGoneIn(collectorBegins, "never-owned")
	w.newHook(false, named("kept", refusal(403, 0))).judgeAll()
	_, path := w.startShadow("--shadow-late", "10s")
	w.make(`
		cm boss
		cm kept   owners=(boss)
		cm other  owners=(boss)
	`)
	w.delete("boss", background)
	w.awaitGone("other")
	w.awaitMetrics("there is a difference", func(m weir.Metrics) bool { return m.Sum("weir_shadow_differences") == 1 })
	w.weir.Stop(plane.DefaultGrace) //nolint:errcheck // what matters is the report, which it writes at its end
	out, code := w.command("shadow", path, "--gate", "1s")
	if code != 1 || strings.Contains(out, "not today") {
		t.Errorf("exit code %d of weir shadow:\n%s", code, out)
	}
	w.mustSay(out, "configmaps "+w.namespace+"/kept: Weir would delete it, and the cluster has not", "the gate is closed: 1 difference")
	out, said, _ := w.ask(w.plane.Kubeconfig, "why", "cm", "kept", "--try", "-n", w.namespace)
	w.mustSay(out+said, "not today")
}

// TestShadowTellsOfNamespaces what no controller does in them, and what is left behind when a user finalizes one.
func TestShadowTellsOfNamespaces(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	read, _ := w.startShadow("--shadow-late", "2s")
	stays, left := fixtureIn(t, w.cluster), fixtureIn(t, w.cluster)
	stays.make("cm one")
	left.make("cm two finalizers=(example.com/hold)")
	ended := stays.drop()
	w.awaitSaid(w.weir, "the cluster has not done what Weir would do", "namespaces "+stays.namespace, `"action":"drain"`)
	left.drop()
	left.finalize() // as people do who have been told to
	w.awaitMetrics("what was left behind is told", func(m weir.Metrics) bool {
		return m.Sum("weir_shadow_decisions", "action", "drain", "result", "kept") == 1
	})
	if err := w.plane.StartController(t.Context(), plane.NamespaceOnly); err != nil {
		t.Fatal(err)
	}
	stays.awaitDropped(ended)
	w.awaitNothingOpen()
	w.weir.Stop(plane.DefaultGrace) //nolint:errcheck // what matters is the report, which it writes at its end

	told := map[string]string{}
	for _, d := range read().Differences {
		told[d.Object] = fmt.Sprintf("%s %s: %s, ended %t", d.What, d.Verb, d.Why, d.Ended != "")
	}
	want := map[string]string{
		"namespaces " + stays.namespace: "late drain: wave 2 of 2 (rest): deleting, ended true",
		"namespaces " + left.namespace:  "kept drain: it holds 1 configmaps, 1 serviceaccounts, ended true",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// TestShadowKnowsWhatTheClusterMayNotDelete from the namespace's conditions.
func TestShadowKnowsWhatTheClusterMayNotDelete(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.NamespaceOnly})
	w.refuseOfSecrets(admissionregistrationv1.Delete)
	w.make("sec protected")
	w.until("secrets are refused", func(ctx context.Context) (bool, error) {
		err := w.typed.CoreV1().Secrets(w.namespace).Delete(ctx, "protected", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err) || apierrors.IsInvalid(err), nil
	})
	read, _ := w.startShadow("--shadow-late", "15s") // the namespace controller begins after 5 s
	w.drop()
	w.awaitMetrics("the refusal is told", func(m weir.Metrics) bool {
		return m.Sum("weir_shadow_decisions", "action", "drain", "result", "refused") == 1
	})
	w.weir.Stop(plane.DefaultGrace) //nolint:errcheck // what matters is the report, which it writes at its end
	if r := read(); len(r.Differences) > 0 {
		t.Errorf("differences: %+v", r.Differences)
	}
}

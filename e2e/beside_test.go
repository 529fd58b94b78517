package e2e

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// collectorCanary is the ConfigMap that any collector but Weir deletes.
const collectorCanary = "weir-collector-canary"

// collectorBegins is how long a kube-controller-manager that was started a moment ago may take
// until it collects.
const collectorBegins = 3 * time.Minute

// TestReplaceModeWaitsWhileAnotherCollectorWorks: it is ready, follows, says why it collects
// nothing, and collects when the other is off.
func TestReplaceModeWaitsWhileAnotherCollectorWorks(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.CollectorOnly})
	w.startWeir("--canary-time", "3s") // it is ready
	w.awaitMetricsIn(collectorBegins, "it is told that another collector works", func(m weir.Metrics) bool { return m.Sum("weir_other_collector", "of", "garbage") == 1 })
	w.awaitCanaryEvent("OtherCollector", "another garbage collector works in this cluster", "it deleted ConfigMap kube-system/"+collectorCanary)
	w.make(`
		cm boss
		cm leaf  owners=(boss)
	`)
	w.delete("boss", background)
	w.awaitGone("boss", "leaf")
	for _, r := range w.auditOf(weirUser) {
		if writes(r.Verb) && r.Object.Name != collectorCanary && r.Object.Resource != "events" && r.Object.Resource != "selfsubjectreviews" {
			t.Errorf("weir sent %s %s %s", r.Verb, r.Object.Resource, r.Object.Name)
		}
	}
	w.upEndsAtOnce()
	if err := w.plane.StopController(); err != nil {
		t.Fatal(err)
	}
	w.make(`
		cm chief
		cm twig  owners=(chief)
	`)
	w.delete("chief", background)
	w.awaitGone("chief", "twig")
	w.awaitMetrics("no other collector works", func(m weir.Metrics) bool { return m.Sum("weir_other_collector", "of", "garbage") == 0 })
}

// upEndsAtOnce: weir up ends beside another collector, and works beside it when it is told to.
func (w *fixture) upEndsAtOnce() {
	w.Helper()
	kubeconfig := w.kubeconfigOf("up")
	up := func(flags ...string) *weir.Process {
		p, err := weir.Launch(w.Context(), weir.Options{Binary: shared.binary, Dir: w.plane.Dir, Name: "up", Kubeconfig: kubeconfig, Command: "up",
			Flags: append([]string{"--mode", "replace", "--leader-elect-namespace", metav1.NamespaceDefault}, flags...)}) // a canary of its own
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(p.Kill)
		return p
	}
	p := up()
	w.mustEndBesideAnother(p)
	if said := p.Tail(2); !strings.Contains(said, "-garbage-collector-controller,-namespace-controller to kube-controller-manager's --controllers") || !strings.Contains(said, "--beside-builtin") {
		w.Errorf("it ended without saying what can be done:\n%s", said)
	}
	p = up("--beside-builtin")
	w.awaitSaid(p, `"msg":"leading"`)
	p.Kill()
}

// mustEndBesideAnother waits for the end of a weir, which has a code of its own.
func (w *fixture) mustEndBesideAnother(p *weir.Process) {
	w.Helper()
	select {
	case <-p.Exited():
	case <-time.After(collectorBegins):
		w.Fatal("weir works beside another collector")
	}
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		w.Errorf("it ended with %v, want code 3; its log ends with\n%s", err, p.Tail(5))
	}
}

func writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

// canary waits for it.
func (w *fixture) canary() (found *corev1.ConfigMap) {
	w.Helper()
	w.until("there is a canary", func(ctx context.Context) (bool, error) {
		var err error
		found, err = w.typed.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, collectorCanary, metav1.GetOptions{})
		return err == nil && found.DeletionTimestamp == nil, nil
	})
	return found
}

// awaitCanaryEvent waits for an Event on the canary that says all of these words.
func (w *fixture) awaitCanaryEvent(reason string, words ...string) {
	w.Helper()
	w.until("there is an Event "+reason+" on the canary", func(ctx context.Context) (bool, error) {
		list, err := w.typed.CoreV1().Events(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + collectorCanary + ",reason=" + reason,
		})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(e.Message, word) })
		}), nil
	})
}

// awaitMetrics waits until weir's metrics are as they should be.
func (w *fixture) awaitMetrics(what string, holds func(weir.Metrics) bool) {
	w.Helper()
	w.until(what, func(ctx context.Context) (bool, error) {
		m, err := w.weir.Metrics(ctx)
		if err != nil {
			return false, w.weir.Ended() // one that is busy answers late
		}
		return holds(m), nil
	})
}

// awaitMetricsIn is awaitMetrics for what takes its time.
func (w *fixture) awaitMetricsIn(d time.Duration, what string, holds func(weir.Metrics) bool) {
	w.Helper()
	if err := plane.Poll(w.Context(), d, func(ctx context.Context) (bool, error) {
		m, err := w.weir.Metrics(ctx)
		return err == nil && holds(m), err
	}); err != nil {
		w.Fatalf("wait until %s: %v", what, err)
	}
}

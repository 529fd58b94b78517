package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestAWebhookThatIsNotAskedIsSeen: with failurePolicy Ignore nothing shows that the API server
// does not get through to the webhook, but the condition Enforced. It says why, and when it is
// over.
func TestAWebhookThatIsNotAskedIsSeen(t *testing.T) {
	t.Parallel()
	w, pair := newPaired(t, companion, plane.Options{})
	started := time.Now()
	w.make(`
		cm one
		cm two
	`)
	guard := w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  protection: {confirmation: Required}`)
	owners := w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [configmaps]}]
    HERE
  blockOwnerDeletion: Deny`)
	// Beside the built-in namespace controller waves hold by the webhook only.
	waves := w.policy("DrainPolicy", configsPodsRest)
	all := map[string]string{"DeletionPolicy": guard, "OwnerReferencePolicy": owners, "DrainPolicy": waves}
	seen := func(why, status, reason, words string) {
		t.Helper()
		began := time.Now()
		for kind, name := range all {
			w.awaitEnforced(kind, name, status, reason, words)
		}
		t.Logf("%s: seen after %s", why, time.Since(began).Round(time.Millisecond))
		m, err := w.weir.Metrics(w.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		if status == "True" {
			want = 1
		}
		if all, one := m.Sum("weir_webhook_reachable"), m.Sum("weir_webhook_reachable", "reason", reason); all != want || one != want {
			t.Errorf("%s: weir_webhook_reachable is %v, %v of that %s, want %v", why, all, one, reason, want)
		}
	}
	seen("all is well", "True", "Reached", "")
	w.until("it is counted what the policies are about", func(context.Context) (bool, error) {
		one, _, err := unstructured.NestedInt64(w.policyNow("DeletionPolicy", guard).Object, "status", "matched")
		if err != nil {
			return false, err
		}
		other, _, err := unstructured.NestedInt64(w.policyNow("OwnerReferencePolicy", owners).Object, "status", "matched")
		return one == 2 && other == 2, err
	})
	w.canaryHoldsUpNothing()
	hidden := w.tokenWritten()

	back := w.killed(w.hook)
	seen("the webhook is killed", "False", "NotReached", "connection refused")
	at, err := url.Parse(pair.url)
	if err != nil {
		t.Fatal(err)
	}
	impostor := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = impostor.Listener.Close() // it has been given a port of its own
	if impostor.Listener, err = (&net.ListenConfig{}).Listen(w.Context(), "tcp", "127.0.0.1:"+at.Port()); err != nil {
		t.Fatal(err)
	}
	impostor.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	impostor.StartTLS()
	seen("another serves in its place", "False", "NotReached", "x509")
	impostor.Close()
	back()
	seen("it is back", "True", "Reached", "")

	stop := func(s syscall.Signal) {
		if err := syscall.Kill(w.hook.Pid(), s); err != nil {
			t.Fatal(err)
		}
	}
	stop(syscall.SIGSTOP)
	seen("the webhook hangs", "False", "NotReached", "deadline exceeded")
	stop(syscall.SIGCONT)
	seen("it goes on", "True", "Reached", "")

	canaries := slices.DeleteFunc(w.auditOf(weirUser), func(r request) bool { return r.Object.Name != "weir-canary" && r.Object.Name != collectorCanary })
	if rate := float64(len(canaries)) / time.Since(started).Seconds(); rate == 0 || rate > 1 {
		t.Errorf("%.2f requests a second about canaries, want 1 at most", rate)
	} else {
		t.Logf("%.2f requests a second about canaries", rate)
	}

	for kind, name := range all {
		text := fmt.Sprint(w.policyNow(kind, name).Object)
		if strings.Contains(text, hidden) {
			t.Errorf("the status of %s shows the token", kind)
		}
	}
	events, err := w.typed.CoreV1().Events("default").List(w.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=weir,reason=NotEnforced"})
	if err != nil || len(events.Items) == 0 || strings.Contains(fmt.Sprint(events.Items), hidden) {
		t.Errorf("Events that it is not enforced: %v, %v", events, err)
	}
}

// policyNow is a policy as it is.
func (w *fixture) policyNow(kind, name string) *unstructured.Unstructured {
	w.Helper()
	u, err := w.dynamic.Resource(policyResources[kind]).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return u
}

// awaitEnforced waits until the condition Enforced of a policy is so.
func (w *fixture) awaitEnforced(kind, name, status, reason, words string) {
	w.Helper()
	last := ""
	w.until(fmt.Sprintf("%s %s says Enforced %s, %s", kind, name, status, reason), func(context.Context) (bool, error) {
		c := meta.FindStatusCondition(conditionsOf(w.policyNow(kind, name)), "Enforced")
		if c == nil {
			return false, nil
		}
		if now := fmt.Sprint(c.Status, " ", c.Reason, ": ", c.Message); now != last {
			last = now
			w.Logf("%s: %s", kind, now)
		}
		return string(c.Status) == status && c.Reason == reason && strings.Contains(c.Message, words), nil
	})
}

// canaryHoldsUpNothing: of deletes only dry runs come to the entry that fails closed, and only of
// one object.
func (w *fixture) canaryHoldsUpNothing() {
	w.Helper()
	leases := w.typed.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := leases.Get(w.Context(), "weir-canary", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	other := lease.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "other", Labels: lease.Labels}
	if _, err := leases.Create(w.Context(), other, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := leases.Delete(w.Context(), "weir-canary", dryRun); !apierrors.IsForbidden(err) {
		w.Errorf("a dry run of the canary's delete: %v", err)
	}
	for _, o := range []metav1.DeleteOptions{dryRun, {}} {
		if err := leases.Delete(w.Context(), "other", o); err != nil {
			w.Errorf("another Lease with its label: %v", err)
		}
	}
	if err := leases.Delete(w.Context(), "weir-canary", metav1.DeleteOptions{}); err != nil {
		w.Errorf("the canary itself: %v", err)
	}
	w.until("the canary is made again", func(ctx context.Context) (bool, error) {
		_, err := leases.Get(ctx, "weir-canary", metav1.GetOptions{})
		return err == nil, nil
	})
}

// tokenWritten is the token in the webhook configurations.
func (w *fixture) tokenWritten() string {
	w.Helper()
	return strings.Split(w.webhookURL().Path, "/")[1]
}

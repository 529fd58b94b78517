//go:build full

package e2e

import (
	"context"
	"encoding/pem"
	"flag"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestFailingKindSlowsDownNoOther: 1,000 objects wait for an aggregated API that
// answers their deletion with 429, Retry-After: 30, or behind a webhook that
// hangs; a cascade of ConfigMaps beside them is as fast as without.
func TestFailingKindSlowsDownNoOther(t *testing.T) {
	t.Parallel()
	const n = 1000
	w := newCluster(t, plane.Options{})
	g := w.newGadgets("get", "list", "watch", "delete", "patch")
	w.make(`
		cm of-gadgets
		cm of-secrets
	`)
	for _, name := range numbered("gadget", n) {
		g.add(w, name, w.reference("of-gadgets"))
	}
	w.startWeir()
	w.awaitMetrics("all gadgets are known", func(m weir.Metrics) bool { return m.Sum("weir_graph_objects", "resource", "gadgets") == n })
	w.cascades(1) // the first is slower
	alone := w.cascades(3)

	g.throttled("30")
	w.delete("of-gadgets", background)
	w.awaitPutOff("gadgets")
	w.mustKeepUp("beside an aggregated API that answers 429", w.cascades(3), alone)
	if g.left() != n {
		t.Errorf("%d of %d gadgets are there", g.left(), n)
	}
	g.throttled("")
	w.until("no gadgets are left", func(context.Context) (bool, error) { return g.left() == 0, nil })

	secrets := numbered("secret", n)
	w.make(dependents("sec", secrets, "of-secrets"))
	alone = w.cascades(3)
	release := w.hangDeletes("secrets")
	w.delete("of-secrets", background)
	w.awaitPutOff("secrets")
	w.mustKeepUp("beside a webhook that hangs", w.cascades(3), alone)
	release()
	w.awaitGone(secrets...)
}

// leastShare of its rate is what a cascade must keep while other tests run: of a
// kind that is held up next to nothing is left. The median that is printed should
// be 0.9 at least with -failing.objects=5000 and nothing else on the machine.
const leastShare = 0.25

var failingObjects = flag.Int("failing.objects", 1000, "ConfigMaps in a cascade beside a failing kind")

func (w *fixture) mustKeepUp(what string, rate, alone float64) {
	w.Helper()
	w.Logf("a cascade of %d ConfigMaps %s: %.0f objects/s, %.2f of %.0f", *failingObjects, what, rate, rate/alone, alone)
	if rate < leastShare*alone {
		w.Errorf("a cascade %s runs at %.2f of its rate", what, rate/alone)
	}
}

// cascades is the median rate of some cascades of ConfigMaps.
func (w *fixture) cascades(times int) float64 {
	w.Helper()
	var rates []float64
	for range times {
		p, err := load.Populate(w.Context(), w.plane.Config, load.Flat(*failingObjects))
		if err != nil {
			w.Fatal(err)
		}
		r, err := load.Measure(w.Context(), w.plane.Config, p, background, func(ctx context.Context) error {
			return w.typed.CoreV1().ConfigMaps(p.Namespace).Delete(ctx, p.Owner.Name, metav1.DeleteOptions{PropagationPolicy: new(background)})
		})
		if err != nil {
			w.Fatal(err)
		}
		rates = append(rates, r.Rate())
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// awaitPutOff waits until objects of a kind wait because it fails.
func (w *fixture) awaitPutOff(resource string) {
	w.Helper()
	w.awaitMetrics(resource+" are put off", func(m weir.Metrics) bool { return m.Sum("weir_objects_put_off", "resource", resource) > 0 })
}

// hangDeletes installs a webhook that never answers about deletions of a kind of
// the core group in the fixture's namespace, and returns what removes it.
func (w *fixture) hangDeletes(resource string) (release func()) {
	w.Helper()
	done, asked := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(asked) })
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		first()
		select {
		case <-in.Context().Done():
		case <-done:
		}
	}))
	w.Cleanup(func() { close(done); server.Close() })
	hooks := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(w.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hangs"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hangs.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
			TimeoutSeconds:    new(int32(10)),
			SideEffects:       new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	// The API server takes a moment to call it. What is asked for goes no further than the webhook.
	probe := numbered("secret", 1)[0]
	w.until("deletions hang", func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, pollEvery*10)
		defer cancel()
		err := w.at(w.of(probe)).Delete(ctx, probe, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		select {
		case <-asked: // an API server that is slow answers late, too
			return true, nil
		default:
		}
		if ctx.Err() != nil {
			err = nil // it is asked soon
		}
		return false, err
	})
	return func() {
		w.Helper()
		if err := hooks.Delete(w.Context(), "hangs", metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestBrokenWatchHoldsUpOnlyOrphaning: of a kind that was listed, and whose watch
// is broken now, there may be dependents that no watch has shown. They would be
// collected if their owner went with its orphans not released.
func TestBrokenWatchHoldsUpOnlyOrphaning(t *testing.T) {
	t.Parallel()
	t.Run("aggregated API that is down", func(t *testing.T) {
		t.Parallel()
		w := newCluster(t, plane.Options{})
		g := w.newGadgets("get", "list", "watch", "delete", "patch")
		g.add(w, "gadget")
		w.startWeir()
		delete(w.kinds, "gadget") // none can be made as other objects are
		w.awaitLevel(1, "gadgets")
		g.stop()
		w.brokenHoldsUpOrphaning("gadgets."+aggregated, g.start)
	})
	t.Run("conversion webhook that is down", func(t *testing.T) {
		t.Parallel()
		w := newCluster(t, plane.Options{})
		crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1", "v2") // v2 is watched, v1 stored
		w.define(crd)
		w.make(`widget one`)
		w.startWeir()
		delete(w.kinds, "widget")
		w.awaitLevel(1, "widgets")
		port, err := plane.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		w.convert(crd.Name, &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(fmt.Sprintf("https://127.0.0.1:%d/convert", port))},
				ConversionReviewVersions: []string{"v1"},
			},
		})
		w.brokenHoldsUpOrphaning(crd.Name, func() {
			w.convert(crd.Name, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
		})
	})
}

// awaitLevel waits until weir has so many objects of a kind, and all kinds are listed.
func (w *fixture) awaitLevel(n float64, resource string) {
	w.Helper()
	w.awaitMetrics(resource+" are listed", func(m weir.Metrics) bool {
		return m.Sum("weir_graph_objects", "resource", resource) == n && m.Sum("weir_graph_kinds") == m.Sum("weir_graph_kinds", "state", "synced")
	})
}

// convert sets how the objects of a CRD are converted.
func (w *fixture) convert(name string, conversion *apiextensionsv1.CustomResourceConversion) {
	w.Helper()
	w.until("the CRD has another conversion", func(ctx context.Context) (bool, error) {
		crd, err := w.crds().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		crd.Spec.Conversion, crd.Spec.PreserveUnknownFields = conversion, false
		_, err = w.crds().Update(ctx, crd, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// brokenHoldsUpOrphaning makes sure that cascades go on while one kind is behind, that
// orphaning waits for it, that the user is told, and that it goes on when the kind is
// repaired.
func (w *fixture) brokenHoldsUpOrphaning(kind string, repair func()) {
	w.Helper()
	w.awaitMetrics("the kind is behind", func(m weir.Metrics) bool { return m.Sum("weir_graph_kinds", "state", "behind") == 1 })
	w.onlyOrphanStays()
	if e := w.awaitEvent("orphan", "DeletionHeld"); !strings.Contains(e.Message, kind+" (its watch is broken: ") {
		w.Errorf("the Event does not say what it waits for: %s", e.Message)
	}
	repair()
	w.awaitGone("orphan")
	w.mustStay("of-orphan")
	w.awaitMetrics("the kind is level again", func(m weir.Metrics) bool { return m.Sum("weir_graph_kinds", "state", "behind") == 0 })
}

// onlyOrphanStays deletes three owners, each with another propagation, and makes sure that all that
// is meant to go goes, but for the owner that waits with the orphan finalizer.
func (w *fixture) onlyOrphanStays() {
	w.Helper()
	w.make(`
		cm boss
		cm leaf       owners=(boss)
		cm foreground
		cm of-fg      owners=(foreground!block)
		cm orphan
		cm of-orphan  owners=(orphan)
	`)
	w.delete("boss", background)
	w.delete("foreground", foreground)
	w.delete("orphan", orphan)
	w.awaitGone("boss", "leaf", "of-fg", "foreground")
	w.awaitOwners("of-orphan", "")
	w.mustBeThere("orphan", "of-orphan")
}

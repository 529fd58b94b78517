//go:build full

package e2e

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestNewKindBesideABrokenOneIsWatched: in the reference one that cannot be mapped
// keeps all new ones from being followed (RB 11.20).
func TestNewKindBesideABrokenOneIsWatched(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir()
	w.aggregate(w.serveHanging()) // discovery knows it, and it never answers
	broken := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(broken)
	w.make("widget unreadable")
	w.breakConversion(broken.Name)
	delete(w.kinds, "widget")

	for _, kind := range []string{"Apple", "Banana"} {
		crd := w.definition(kind, apiextensionsv1.NamespaceScoped, "v1")
		w.define(crd)
		short := crd.Spec.Names.Singular
		w.make(`
			` + short + ` ` + short + `-boss
			cm ` + short + `-leaf         owners=(` + short + `-boss)
			` + short + ` ` + short + `-of-leaf   owners=(` + short + `-leaf)
		`)
		w.delete(short+"-boss", background)
		w.awaitGone(short+"-leaf", short+"-of-leaf")
	}
}

// TestAggregatedAPIThatHangsIsSlow: its discovery answers, and nothing else ever
// does. Dependents may be about to arrive: for five minutes foreground deletion
// waits for them too.
func TestAggregatedAPIThatHangsIsSlow(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir()
	w.aggregate(w.serveHanging())
	w.awaitMetrics("the kind that hangs is slow", func(m weir.Metrics) bool {
		return m.Sum("weir_graph_kinds", "state", "slow") == 1
	})
	if err := w.weir.Ready(t.Context()); err != nil {
		t.Errorf("it is not ready: %v", err)
	}
	w.deleteEachWay()
	for _, name := range []string{"foreground", "orphan"} {
		if e := w.awaitEvent(name, "DeletionHeld"); !strings.Contains(e.Message, "gadgets."+aggregated) {
			t.Errorf("the Event on %s does not say what it waits for: %s", name, e.Message)
		}
	}
	w.mustBeThere("foreground", "orphan", "of-orphan")
	if err := w.dynamic.Resource(apiServices).Delete(t.Context(), "v1."+aggregated, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitGone("foreground", "orphan")
	w.mustStay("of-orphan")
}

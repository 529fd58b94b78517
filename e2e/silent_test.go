//go:build full

package e2e

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestSilentWatchHoldsOrphaning: an object that the API server cannot decode keeps its watches of
// the kind open, and has them show nothing.
func TestSilentWatchHoldsOrphaning(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(crd)
	w.make(`
		widget one
		cm     boss
	`)
	w.startWeir()
	w.awaitLevel(1, "widgets")
	repair, err := w.plane.Corrupt(t.Context(), "/registry/"+crd.Spec.Group+"/widgets/"+w.namespace+"/broken")
	if err != nil {
		t.Fatal(err)
	}
	w.make(`widget leaf owners=(boss)`)
	w.delete("boss", orphan)
	if e := w.awaitEvent("boss", "DeletionHeld"); !strings.Contains(e.Message, crd.Name) {
		t.Errorf("the Event does not say what it waits for: %s", e.Message)
	}
	if err := repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitGone("boss")
	w.mustStay("leaf")
	if have := w.owners("leaf"); have != "" {
		t.Errorf("the owners of leaf are (%s), want none", have)
	}
}

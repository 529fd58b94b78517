//go:build full

package e2e

import (
	"flag"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

var instances = flag.Int("brake.instances", 600, "how many instances a definition has that is deleted")

// TestBrakeHoldsWhatADefinitionTakesWithIt: who uninstalls an operator whose chart has the definition
// among its templates deletes that, and all instances with it. What these own is held, in both modes,
// and goes when a person decides.
func TestBrakeHoldsWhatADefinitionTakesWithIt(t *testing.T) {
	t.Parallel()
	for name, holdable := range map[string]func(*testing.T) (*fixture, *apiextensionsv1.CustomResourceDefinition){
		"replace": func(t *testing.T) (*fixture, *apiextensionsv1.CustomResourceDefinition) {
			w, crd := newHoldable(t)
			w.startWeir()
			return w, crd
		},
		"companion": func(t *testing.T) (*fixture, *apiextensionsv1.CustomResourceDefinition) {
			w, _, crd := newHoldableCompanion(t, plane.Collectors)
			return w, crd
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, crd := holdable(t)
			owned := numbered("owned", *instances)
			w.makePairs("widget", numbered("widget", *instances), owned)
			w.make(`
				cm boss
				cm leaf owners=(boss)
			`)
			w.settle()
			w.beginUndefine(crd)
			held := w.awaitCounted(crd.Name, owned)
			w.mustBeHeld(held, owned, "DefinitionGone")
			w.delete("boss", background)
			w.awaitGoneIn(collectorBegins, "leaf")
			w.proceed(crd.Name, status(held, "digest"))
			w.awaitGone(owned...)
			w.awaitNotHeld(crd.Name)
		})
	}
}

//go:build full

package e2e

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
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

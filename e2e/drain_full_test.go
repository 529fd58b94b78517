//go:build full

package e2e

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWaveGoesOnWhereAKilledWeirLeftIt: the time that a wave has does not begin
// again with a new weir.
func TestWaveGoesOnWhereAKilledWeirLeftIt(t *testing.T) {
	t.Parallel()
	w := newOrdered(t, plane.Options{}, drainPolicy("slow", `
  - {name: configs, timeoutSeconds: 86400, onTimeout: Proceed, resources: [{apiGroups: [""], resources: [configmaps]}]}
  - {name: widgets, resources: [{apiGroups: ["*"], resources: [widgets]}]}
  - {name: rest, resources: [{apiGroups: [""], resources: [secrets]}]}
`))
	w.define(w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1"))
	w.order("slow")
	w.make(`
		sec    keys
		widget one   finalizers=(example.com/hold)
		cm     conf  finalizers=(example.com/hold)
	`)
	for i := range 200 {
		w.create("cm", fmt.Sprintf("conf-%d", i), nil)
	}
	uid := w.drop()
	began := w.awaitWave("configs")
	w.weir.Kill()
	if err := w.weir.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitConditions("WeirDraining=True Waiting: wave 1 of 3 (configs): waiting for 1 configmaps (1 terminating)…")
	if now := w.awaitWave("configs"); !now.Equal(began) {
		t.Errorf("the wave began at %s, and after a restart at %s", began, now)
	}
	w.alive("one", "keys")

	// What happens while there is no weir is seen by the next one.
	w.weir.Kill()
	w.unfinalize("conf")
	w.awaitGone("conf")
	if err := w.weir.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitWave("widgets")
	w.awaitTerminating("one")
	w.alive("keys")
	w.unfinalize("one")
	w.awaitDropped(uid)
}

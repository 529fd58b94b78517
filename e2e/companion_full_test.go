//go:build full

package e2e

import (
	"context"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// newCompanion is a cluster of its own with weir's controller and webhook.
func newCompanion(t *testing.T, controllers plane.Controllers) (*fixture, pair) {
	t.Helper()
	return newPaired(t, companion, plane.Options{Controllers: controllers})
}

// TestWebhookOutageCostsTheOrderAndNothingElse: the namespace controller deletes
// as it always does, and Weir does not stand in its way.
func TestWebhookOutageCostsTheOrderAndNothingElse(t *testing.T) {
	t.Parallel()
	w, p := newCompanion(t, plane.NamespaceOnly)
	w.policy("DrainPolicy", configsPodsRest)
	w.make(`
		sec keys
		po  web
		cm  conf  finalizers=(example.com/hold)
	`)
	p.hook.Kill()
	uid := w.drop()
	w.awaitGone("keys", "web")
	if conf := w.get("conf"); conf == nil || conf.GetDeletionTimestamp() == nil {
		t.Error("conf is not being deleted, or is gone")
	}
	w.unfinalize("conf")
	w.awaitDropped(uid)
}

// TestNamespaceControllerIsAskedUntilItLetsGo: Weir leaves the last word to it,
// and does not rely on its having heard.
func TestNamespaceControllerIsAskedUntilItLetsGo(t *testing.T) {
	t.Parallel()
	w, _ := newCompanion(t, plane.None)
	w.policy("DrainPolicy", configsPodsRest)
	w.make(`
		sec keys
		cm  conf  finalizers=(example.com/hold)
	`)
	uid := w.drop()
	w.awaitConditions("WeirDraining=True Waiting: wave 1 of 3 (configs)…")
	w.unfinalize("conf")
	w.awaitConditions("WeirDraining=False Drained: nothing is left that was seen")
	w.awaitGone("conf", "keys")
	asked := w.awaitWave("rest")
	w.until("it is asked again", func(context.Context) (bool, error) {
		return w.awaitWave("rest").After(asked), nil
	})
	if err := w.plane.StartController(context.WithoutCancel(t.Context()), plane.NamespaceOnly); err != nil {
		t.Fatal(err)
	}
	w.awaitDropped(uid)
}

//go:build full

package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWavesHoldWhereControllersAreOneUser: kube-controller-manager without credentials for each of
// its controllers.
func TestWavesHoldWhereControllersAreOneUser(t *testing.T) {
	t.Parallel()
	const user = "system:kube-controller-manager"
	w, _ := newPaired(t, companion, plane.Options{Controllers: plane.Collectors, ControllerManagerFlags: []string{"--use-service-account-credentials=false"}})
	if _, err := identity(t.Context(), w.plane, user); err != nil { // its own role is for leases and the like
		t.Fatal(err)
	}
	w.policy("DrainPolicy", configsPodsRest)
	w.make(`
		sec keys
		cm  conf   finalizers=(example.com/hold)
		cm  parent
		cm  child  owners=(parent)
	`)
	w.delete("parent", background)
	w.awaitGone("child") // the collector is the same user
	uid := w.drop()
	w.awaitWave("configs")
	w.until("the namespace controller was refused", func(context.Context) (bool, error) {
		return slices.Contains(w.refused(user), "secrets"), nil
	})
	w.alive("keys")
	w.unfinalize("conf")
	w.awaitGone("keys")
	w.awaitDropped(uid)
}

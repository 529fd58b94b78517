//go:build full

package e2e

import (
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWebhookConfigurationsGoWithWeirsNamespaceBesideTheBuiltInControllers: they drain it, with
// Weir in it, and the built-in collector finds that the configurations have lost their owner.
func TestWebhookConfigurationsGoWithWeirsNamespaceBesideTheBuiltInControllers(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.All})
	w.startAtHome(companion)
	w.deleteHome()
	w.weir.Kill() // its pod goes
	w.awaitHomeGone()
}

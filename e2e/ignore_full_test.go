//go:build full

package e2e

import (
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestIgnoredKindIsLeftAlone: its objects are not collected, but they own.
func TestIgnoredKindIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.startWeir("--ignore", "secrets")
	w.make(`
		cm  boss
		cm  leaf       owners=(boss)
		sec secret     owners=(boss)
		sec owner
		cm  of-secret  owners=(owner)
	`)
	delete(w.kinds, "sec")
	w.mustStay("of-secret")
	w.delete("boss", background)
	w.awaitGone("boss", "leaf")
	w.mustStay("secret", "owner", "of-secret")
}

//go:build full

package e2e

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestBuiltInCollectorIsHeldForWrittenReferences has a controller write nonsense into 600 objects. When they are repaired nothing is held any more.
func TestBuiltInCollectorIsHeldForWrittenReferences(t *testing.T) {
	t.Parallel()
	w, _, crd := newHoldableCompanion(t, plane.Collectors)
	owned := w.ownedByWidgets()
	w.rewrite(owned, func(string) types.UID { return uuid.NewUUID() })

	held := w.awaitCounted(crd.Name, owned)
	left := w.countLeft(owned)
	t.Logf("%d of %d are left; held: %s", left, len(owned), status(held, "message"))
	if gone := len(owned) - left; gone > mostByInference {
		t.Errorf("%d objects were deleted, and %d are the limit", gone, mostByInference)
	}
	w.delete("boss", background)
	w.awaitGone("leaf")
	w.rewrite(w.stillThere(owned), func(name string) types.UID { return w.of("widget" + strings.TrimPrefix(name, "owned")).uid })
	w.awaitNotHeld(crd.Name)
	if now := w.countLeft(owned); now != left {
		t.Errorf("%d are left after they were repaired, want %d", now, left)
	}
}

// TestBuiltInCollectorIsHeldAtItsStart: 600 owners went while no collector ran. When it is started it finds their dependents.
func TestBuiltInCollectorIsHeldAtItsStart(t *testing.T) {
	t.Parallel()
	w, _, crd := newHoldableCompanion(t, plane.None)
	owners, owned := numbered("widget", 600), numbered("owned", 600)
	w.makePairs("widget", owners, owned)
	w.hook.Kill() // which would have seen them go
	w.weir.Kill()
	w.deleteAll("widget")
	for _, again := range []interface{ Restart(context.Context) error }{w.hook, w.weir} {
		if err := again.Restart(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.plane.StartController(context.WithoutCancel(t.Context()), plane.Collectors, lifted...); err != nil {
		t.Fatal(err)
	}
	held := w.awaitCounted(crd.Name, owned)
	w.awaitCollectorRefused(5)
	t.Logf("%d of 600 are left; held: %s", w.countLeft(owned), status(held, "message"))
	if gone := 600 - w.countLeft(owned); gone > mostByInference {
		t.Errorf("%d objects were deleted, and %d are the limit", gone, mostByInference)
	}
	w.proceed(crd.Name, status(held, "digest"))
	w.awaitGone(owned...)
	w.awaitNotHeld(crd.Name)
}

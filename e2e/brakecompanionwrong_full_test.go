//go:build full

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// fewByInference is --brake-most where the built-in collector is wrong about no more than it
// remembers to be gone: 500 owners.
const fewByInference = 50

// sharedWithWidgets makes objects that are owned by a widget each, and all by one ConfigMap; beside
// them an owner with a dependent.
func (w *fixture) sharedWithWidgets(n int) (owned []string) {
	w.Helper()
	owned = numbered("owned", n)
	var lines strings.Builder
	lines.WriteString("cm shared\ncm boss\ncm leaf owners=(boss)\n")
	for i := range n {
		fmt.Fprintf(&lines, "widget widget-%d\nsec owned-%d owners=(widget-%d,shared)\n", i, i, i)
	}
	w.make(lines.String())
	return owned
}

// mustHoldWhatIsWrong: the built-in collector wants to delete objects although an owner of theirs
// is there. No more than the limit goes, and all else does.
func (w *fixture) mustHoldWhatIsWrong(owned []string, limit int) (left []string) {
	w.Helper()
	w.awaitCollectorRefused(10)
	w.delete("boss", background)
	w.awaitGoneIn(collectorBegins, "leaf")
	left = w.stillThere(owned)
	w.Logf("%d of %d are left", len(left), len(owned))
	if gone := len(owned) - len(left); gone > limit {
		w.Errorf("%d objects were deleted, and %d are the limit", gone, limit)
	}
	return left
}

// mustStand: nothing else goes, nothing is held when the collector begins again and knows the
// owners, and what loses its owner then is collected.
func (w *fixture) mustStand(crd *apiextensionsv1.CustomResourceDefinition, left []string) {
	w.Helper()
	if err := w.plane.StopController(); err != nil {
		w.Fatal(err)
	}
	w.startCollector()
	if now := w.countLeft(left); now != len(left) {
		w.Errorf("%d are left, want %d", now, len(left))
	}
	w.awaitNotHeld(crd.Name)
	w.awaitFollowed(crd, len(left))
	w.delete("widget-"+strings.TrimPrefix(left[0], "owned-"), background)
	w.awaitGoneIn(collectorBegins, left[0])
}

// awaitFollowed waits until both processes of weir have this many objects of a kind: the delete of
// an owner that no watch shows counts as inferred.
func (w *fixture) awaitFollowed(crd *apiextensionsv1.CustomResourceDefinition, least int) {
	w.Helper()
	w.until("both processes follow "+crd.Name+" again", func(ctx context.Context) (bool, error) {
		for _, p := range []*weir.Process{w.hook, w.weir} {
			m, err := p.Metrics(ctx)
			if err != nil || m.Sum("weir_graph_objects", "resource", crd.Spec.Names.Plural) < float64(least) || m.Sum("weir_graph_kinds", "state", "listing") > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// TestBuiltInCollectorIsHeldWhereAKindIsNotServedAnyMore: the API of 150 owners is switched off, as
// where discovery loses a group. For up to half a minute the built-in collector does not know that,
// and takes the 404 of a lookup for the end of an owner.
func TestBuiltInCollectorIsHeldWhereAKindIsNotServedAnyMore(t *testing.T) {
	t.Parallel()
	w, _, crd := newHoldableCompanion(t, plane.None, fmt.Sprint("--brake-most=", fewByInference))
	owned := w.sharedWithWidgets(150)
	w.startCollector() // it has looked at what is served a moment ago
	w.serves(crd, false)
	w.delete("shared", background)
	left := w.mustHoldWhatIsWrong(owned, fewByInference)
	w.serves(crd, true)
	w.mustStand(crd, left)
}

// TestBuiltInCollectorIsHeldAfterARestore: 150 owners were deleted, and what they own was
// collected, before etcd is put back to a backup in which all of them are there. The built-in
// collector remembers them to be gone (RB 2.18).
func TestBuiltInCollectorIsHeldAfterARestore(t *testing.T) {
	t.Parallel()
	w, _, crd := newHoldableCompanion(t, plane.Collectors, fmt.Sprint("--brake-most=", fewByInference))
	owned := w.sharedWithWidgets(150)
	snapshot := filepath.Join(t.TempDir(), "snapshot.db")
	if err := w.plane.Snapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	widgets := numbered("widget", 150)
	for _, name := range widgets {
		w.delete(name, background)
	}
	w.delete("shared", background)
	w.awaitGoneIn(collectorBegins, owned...)

	if err := w.plane.Restore(t.Context(), snapshot, plane.RestoreOptions{Bump: 1_000_000_000}); err != nil {
		t.Fatal(err)
	}
	w.mustNotice(time.Now())
	w.delete("shared", background)
	left := w.mustHoldWhatIsWrong(owned, fewByInference)
	if there := w.countLeft(widgets); there != len(widgets) {
		t.Errorf("%d of %d owners are there", there, len(widgets))
	}
	w.mustStand(crd, left)
}

package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/ask/insight"
)

// foreground is the metadata of what is being deleted, and waits for its dependents.
const foreground = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [foregroundDeletion]"

// widened has a namespace whose owner in none waits, for what is in it and what is in another one,
// in which something else waits and something has lost its owner.
func widened(t *testing.T) *reading {
	r := newReading(t)
	r.put("namespace", "", "x", "")
	r.put("namespace", "", "z", foreground)
	r.put("namespace", "", "other", foreground)
	r.put("configmap", "x", "leaf", ", finalizers: [example.com/hold], deletionTimestamp: '2026-01-01T00:00:00Z'", "namespace/z")
	r.put("configmap", "y", "stuck", ", finalizers: [example.com/hold], deletionTimestamp: '2026-01-01T00:00:00Z'")
	r.put("configmap", "y", "lost", "", "configmap/never")
	r.put("configmap", "x", "strayed", "", "configmap/never")
	return r
}

// told is what surveys tell of, sorted.
func told(w *insight.World) (pending, orphans []string) {
	for _, g := range w.Pending(time.Now()) {
		for _, i := range g.Items {
			pending = append(pending, i.Name)
		}
	}
	for _, o := range w.Orphans() {
		orphans = append(orphans, o.Name)
	}
	slices.Sort(pending)
	return slices.Compact(pending), orphans
}

// TestSurveysTellOfTheNamespaceThatWasAskedAbout: what is in others is no part of the answer, also
// where it was read.
func TestSurveysTellOfTheNamespaceThatWasAskedAbout(t *testing.T) {
	r := widened(t)
	for name, c := range map[string]struct {
		world func() *insight.World
		want  string
	}{
		"a namespace": {func() *insight.World { return r.read("x") }, "[leaf] [strayed]"},
		"the cluster": {func() *insight.World { return r.read("") }, "[leaf other stuck z] [strayed lost]"},
	} {
		t.Run(name, func(t *testing.T) {
			pending, orphans := told(c.world())
			if got := fmt.Sprint(pending, orphans); got != c.want {
				t.Errorf("it tells of %s, want %s", got, c.want)
			}
		})
	}
}

// TestWhatIsInOtherNamespacesIsMissed: where a cluster-scoped owner of what is in the namespace is
// being deleted, which may wait for it.
func TestWhatIsInOtherNamespacesIsMissed(t *testing.T) {
	r := widened(t)
	missed := func(u string) bool {
		return strings.HasPrefix(u, "what is in other namespaces: a cluster-scoped owner is being deleted")
	}
	if all := unread(r.read("x")); !slices.ContainsFunc(all, missed) {
		t.Errorf("it says that it has not read %q", all)
	}
	if all := unread(r.read("y")); slices.ContainsFunc(all, missed) {
		t.Errorf("it says that it has not read %q", all)
	}
}

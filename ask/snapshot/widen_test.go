package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// followWidened follows such a cluster.
func followWidened(t *testing.T) *following {
	t.Helper()
	ending := func(m *metav1.PartialObjectMetadata, finalizer string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
		m.DeletionTimestamp, m.Finalizers, m.OwnerReferences = &metav1.Time{Time: time.Now()}, []string{finalizer}, owners
		return m
	}
	f := follow(t, object("namespace", "", "x"), ending(object("namespace", "", "z"), metav1.FinalizerDeleteDependents),
		ending(object("configmap", "x", "leaf"), "example.com/hold", metav1.OwnerReference{APIVersion: "v1", Kind: "namespace", Name: "z", UID: "z"}),
		ending(object("configmap", "y", "stuck"), "example.com/hold"))
	f.start("")
	return f
}

// whole is the World of a namespace.
func (f *following) whole(namespace string) *insight.World {
	f.Helper()
	w, err := f.World(namespace)
	if err != nil {
		f.Fatal(err)
	}
	return w
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
	r, f := widened(t), followWidened(t)
	for name, c := range map[string]struct {
		world func() *insight.World
		want  string
	}{
		"a namespace":           {func() *insight.World { return r.read("x") }, "[leaf z] [strayed]"},
		"the cluster":           {func() *insight.World { return r.read("") }, "[leaf other stuck z] [strayed lost]"},
		"a namespace, followed": {func() *insight.World { return f.whole("x") }, "[leaf z] []"},
		"the cluster, followed": {func() *insight.World { return f.whole("") }, "[leaf stuck z] []"},
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

//go:build full

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestReleaseNamesWhatItCannotRelease, and does all the rest.
func TestReleaseNamesWhatItCannotRelease(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	kubeconfig := w.kubeconfigOf(weirUser)
	h := w.newHook(false, named("guarded", refusal(403, 0)))
	w.make(`
		cm  guarded finalizers=(` + finalizer + `)
		cm  other   finalizers=(` + finalizer + `)
		sec another finalizers=(` + finalizer + `)
	`)
	r := w.release(kubeconfig)
	want := "configmaps " + w.namespace + "/guarded: "
	if r.err == "" || !strings.Contains(r.log, want) || !strings.Contains(r.log, "not today") {
		t.Errorf("%q does not name %q:\n%s", r.err, want, r.log)
	}
	if diff := cmp.Diff([]string{"guarded"}, w.withFinalizer([]string{"another", "guarded", "other"})); diff != "" {
		t.Errorf("left (-want +have):\n%s", diff)
	}
	h.allow()
	if r := w.release(kubeconfig); r.err != "" || len(w.withFinalizer([]string{"guarded"})) > 0 {
		t.Errorf("once it is allowed: %s\n%s", r.err, r.log)
	}
}

// withFinalizer are those of the objects that carry anything of Weir's.
func (w *fixture) withFinalizer(names []string) (withFinalizer []string) {
	w.Helper()
	for _, name := range names {
		o := w.get(name)
		if o != nil && (slices.Contains(o.GetFinalizers(), finalizer) || o.GetAnnotations()["weir.dev/armed-at"] != "") {
			withFinalizer = append(withFinalizer, name)
		}
	}
	return withFinalizer
}

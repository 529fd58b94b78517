package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClusterScopedOwnerKeepsItsDependentsWhileItIsThere(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	volume, role := "volume-"+w.namespace, "role-"+w.namespace
	w.make("pv " + volume)
	w.make("cr " + role + " owners=(" + volume + ")")
	w.make("cm leaf owners=(" + volume + ")")
	missing := w.of(volume).reference()
	missing.Name, missing.UID = "nobody", ownerThatNeverWas().UID
	w.create("cm", "of-nobody", []metav1.OwnerReference{missing})
	unknown := missing
	unknown.Kind, unknown.APIVersion = "Unknown", "unknown.example.com/v1"
	w.create("cm", "of-unknown", []metav1.OwnerReference{unknown})

	w.awaitGone("of-nobody")
	w.mustStay(volume, role, "leaf", "of-unknown")
	w.delete(volume, background)
	w.awaitGone(volume, role, "leaf")
	w.alive("of-unknown")
}

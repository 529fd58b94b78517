package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// absentOwner is a reference to a ConfigMap that never was.
func absentOwner(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uuid.NewUUID()}
}

// TestReferenceToAnOwnerThatNeverWasComesOffWhileAnotherIsThere: it must not be the
// last one left.
func TestReferenceToAnOwnerThatNeverWasComesOffWhileAnotherIsThere(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`cm boss`)
	never := absentOwner("never")
	names := numbered("leaf", 20)
	for _, name := range names {
		w.create("cm", name, []metav1.OwnerReference{w.of("boss").reference(), never})
	}
	for _, name := range names {
		w.awaitOwners(name, "boss")
	}
	w.mustStay(names...)
	w.awaitRequests(weirUser, "patch", len(names), names...)
	if have := w.requests(weirUser, "never")["get"]; have == 0 || have > len(names) {
		t.Errorf("the owner that never was has been looked up %d times for %d objects", have, len(names))
	}
	w.delete("boss", orphan)
	w.awaitGone("boss")
	w.mustStay(names...)
}

// TestOrphansWithAnOwnerThatNeverWasStay: the owner is deleted with orphan before
// there was time to look for the other one.
func TestOrphansWithAnOwnerThatNeverWasStay(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`cm boss`)
	names := numbered("leaf", 100)
	for i, name := range names {
		never := absentOwner(fmt.Sprint("never-", i))
		if i%2 == 1 { // under the uid of another object, a name that no object has
			never.UID = types.UID(string(w.of("boss").uid))
		}
		w.create("cm", name, []metav1.OwnerReference{w.of("boss").reference(), never})
	}
	w.delete("boss", orphan)
	w.awaitGone("boss")
	w.mustStay(names...)
	for _, name := range names {
		w.awaitOwners(name, "")
	}
}

//go:build full

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestClearedReferencesDoNotBlock(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.make("cm owner")
		w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  blockOwnerDeletion: Clear`)
		n := 0
		w.until("references are cleared", func(context.Context) (bool, error) {
			n++
			name := fmt.Sprintf("child-%d", n)
			w.make("sec " + name + " owners=(owner!block)")
			return w.owners(name) == "owner!unblock", nil
		})
	})
}

// An owner that never was is found by asking the API server for it, as is one that is so new that the graph does not know it.
func TestDanglingOwnersAreFound(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("OwnerReferencePolicy", `
  match:
    resources: [{apiGroups: [""], resources: [secrets]}]
    HERE
  rules: {dangling: Deny}`)
		w.make("cm owner")
		never := w.of("owner").reference()
		never.UID = "00000000-0000-4000-8000-00000000dead"
		w.until("an owner that never was is refused", func(context.Context) (bool, error) {
			err := w.tryOwned(w.dynamic, "child", never)
			if err != nil && !strings.Contains(err.Error(), "does not exist: the garbage collector would delete") {
				return false, err
			}
			return err != nil, nil
		})
		if err := w.tryOwned(w.dynamic, "child", w.of("owner").reference()); err != nil {
			t.Errorf("an owner that is there: %v", err)
		}
		for i := range 20 {
			name := fmt.Sprintf("new-%d", i)
			w.make("cm " + name)
			if err := w.tryOwned(w.dynamic, "child", w.of(name).reference()); err != nil {
				t.Errorf("an owner that is new: %v", err)
			}
		}
	})
}

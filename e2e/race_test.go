package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestDependentThatFindsAnotherOwnerInTimeIsKept deletes an owner while its
// dependents are given another one, beside the first or in its place: each goes, or it gets the
// other owner, and then it stays.
func TestDependentThatFindsAnotherOwnerInTimeIsKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const n = 300
	leaves := numbered("leaf", n)
	w.make(`
		cm boss
		cm staying
	`)
	w.make(dependents("cm", leaves, "boss"))
	w.settle()
	added := owners(t, w.reference("boss"), w.reference("staying"))
	replaced := owners(t, w.reference("staying"))

	saved := w.inParallel(leaves, func(ctx context.Context, name string) (bool, error) {
		if name == leaves[0] { // while others are being adopted
			boss := w.made["boss"]
			if err := w.at(boss).Delete(ctx, boss.name, metav1.DeleteOptions{PropagationPolicy: new(background)}); err != nil {
				return false, err
			}
		}
		o := w.made[name]
		adopted := added
		if name[len(name)-1]%2 == 0 {
			adopted = replaced
		}
		_, err := w.at(o).Patch(ctx, o.name, types.MergePatchType, adopted, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	t.Logf("%d of %d were adopted in time", len(saved), n)
	if len(saved) == 0 || len(saved) == n {
		t.Errorf("%d of %d were adopted: there was no race", len(saved), n)
	}
	lost := slices.DeleteFunc(slices.Clone(leaves), func(name string) bool { return slices.Contains(saved, name) })
	w.awaitGone(lost...)
	w.mustStay(append(saved, "staying")...)
	for _, name := range saved {
		w.awaitOwners(name, "staying")
	}
}

// owners is a patch to these references.
func owners(t *testing.T, refs ...metav1.OwnerReference) []byte {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs}})
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// inParallel calls f for each name, some at a time, and returns those for which
// it is true, sorted. f must not end the test.
func (w *fixture) inParallel(names []string, f func(context.Context, string) (bool, error)) []string {
	w.Helper()
	var mu sync.Mutex
	var yes []string
	var errs []error
	var group sync.WaitGroup
	todo := make(chan string)
	for range 8 {
		group.Go(func() {
			for name := range todo {
				ok, err := f(w.Context(), name)
				mu.Lock()
				if ok {
					yes = append(yes, name)
				}
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
				}
				mu.Unlock()
			}
		})
	}
	for _, name := range names {
		todo <- name
	}
	close(todo)
	group.Wait()
	if len(errs) > 0 {
		w.Fatalf("%d failed, the first: %v", len(errs), errs[0])
	}
	slices.Sort(yes)
	return yes
}

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

// TestDependentsMadeDuringOrphaningStay makes dependents of an owner before,
// while and after it is deleted with orphan.
func TestDependentsMadeDuringOrphaningStay(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`cm boss`)
	leaves := numbered("leaf", 300)
	owner := []metav1.OwnerReference{w.reference("boss")}
	k := w.kinds["cm"]
	var mu sync.Mutex
	made := map[string]object{}
	w.inParallel(leaves, func(ctx context.Context, name string) (bool, error) {
		if name == leaves[len(leaves)/3] {
			boss := w.made["boss"]
			if err := w.at(boss).Delete(ctx, boss.name, metav1.DeleteOptions{PropagationPolicy: new(orphan)}); err != nil {
				return false, err
			}
		}
		manifest, err := k.manifest(name, owner, nil)
		if err != nil {
			return false, err
		}
		o := object{kind: k, namespace: w.namespace, name: name}
		created, err := w.at(o).Create(ctx, manifest, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		o.uid = created.GetUID()
		mu.Lock()
		defer mu.Unlock()
		made[name] = o
		return true, nil
	})
	for name, o := range made {
		w.made[name] = o
	}
	w.awaitGone("boss")
	w.mustStay(leaves...)
	for _, name := range leaves {
		w.awaitOwners(name, "")
	}
}

// TestDependentThatIsSeenBeforeItsOwnerIsKept: watches of different kinds keep no
// order among each other.
func TestDependentThatIsSeenBeforeItsOwnerIsKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	pairs := numbered("pair", 400)
	w.inParallel(pairs, func(ctx context.Context, name string) (bool, error) {
		var owners []metav1.OwnerReference
		for _, short := range []string{"sec", "cm"} {
			k := w.kinds[short]
			manifest, err := k.manifest(name, owners, nil)
			if err != nil {
				return false, err
			}
			o := object{kind: k, namespace: w.namespace, name: name}
			made, err := w.at(o).Create(ctx, manifest, metav1.CreateOptions{})
			if err != nil {
				return false, err
			}
			o.uid = made.GetUID()
			owners = []metav1.OwnerReference{o.reference()}
		}
		return true, nil
	})
	w.make(`
		sec settled
		cm  last     owners=(settled)
	`)
	w.settle()
	list, err := w.at(w.of("last")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for i := range list.Items {
		if name := list.Items[i].GetName(); slices.Contains(pairs, name) {
			there = append(there, name)
		}
	}
	if len(there) != len(pairs) {
		t.Errorf("%d of %d dependents are there", len(there), len(pairs))
	}
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

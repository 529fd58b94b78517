package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keeping is a policy of one resource that keeps the ConfigMaps that its objects own.
func keeping(resource, propagation string) string {
	group, name, grouped := strings.Cut(resource, "/")
	if !grouped {
		group, name = "", resource
	}
	return `
  match:
    resources: [{apiGroups: ["` + group + `"], resources: [` + name + `]}]
    HERE
  propagation:` + propagation + `
    dependents: [{apiGroups: [""], resources: [configmaps], action: Orphan}]`
}

// keptBy makes ConfigMaps that an object owns: enough of them that a collector which begins at once gets to some before all are released.
func (w *fixture) keptBy(owner string) (names []string) {
	w.Helper()
	for i := range 60 {
		names = append(names, fmt.Sprintf("kept-%d", i))
		w.make(fmt.Sprintf("cm %s owners=(%s!block)", names[i], owner))
	}
	return names
}

// mustHaveNoOwner makes sure that objects stay, and lose their owners.
func (w *fixture) mustHaveNoOwner(names []string) {
	w.Helper()
	w.mustStay(names...)
	for _, name := range names {
		w.awaitOwners(name, "")
	}
}

// awaitLetThrough waits until a delete would be accepted: the webhook believes that no other collector works when the canary has stood for ten
// seconds.
func (w *fixture) awaitLetThrough(name string, policy metav1.DeletionPropagation) {
	w.Helper()
	options := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if policy != none {
		options.PropagationPolicy = &policy
	}
	o := w.of(name)
	w.until("the delete of "+name+" is let through", func(ctx context.Context) (bool, error) {
		err := w.at(o).Delete(ctx, o.name, options)
		if err != nil && strings.Contains(err.Error(), "some of its dependents are to be kept") {
			return false, nil
		}
		return err == nil, err
	})
}

// A collector deletes what has dependents of its own foreground, if the owner goes foreground: what is to be kept below it is
// released before the first of them is deleted.
func TestCascadeThatIsForegroundKeepsWhatIsToBeKept(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	w.policy("DeletionPolicy", keeping("secrets", ""))
	w.awaitFinalizerAdded("sec")
	w.make(`
		rc  owner
		sec middle owners=(owner!block)
		rc  leaf   owners=(middle!block)
	`)
	kept := w.keptBy("middle")
	w.delete("owner", foreground)
	w.awaitGone("owner", "middle", "leaf")
	w.mustHaveNoOwner(kept)
}

// The API server would orphan what a Job owns, where nothing is asked for, so that a finalizer has it deleted foreground: what is to be
// kept is kept all the same.
func TestBareDeleteOfAJobKeepsWhatIsToBeKept(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	w.policy("DeletionPolicy", keeping("batch/jobs", `
    default: Background`))
	w.awaitFinalizerAdded("job")
	w.make(`
		job bare
		sec leaf owners=(bare!block)
	`)
	kept := w.keptBy("bare")
	w.awaitLetThrough("bare", none)
	w.delete("bare", none)
	w.awaitGone("bare", "leaf")
	w.mustHaveNoOwner(kept)
}

// Who asks for Foreground gets it where Weir collects: its own collector waits. The built-in one does not, and there it is refused, as is
// a delete that asks for nothing and is foreground by a finalizer.
func TestExplicitForegroundKeepsWhatIsToBeKept(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, replace)
	w.policy("DeletionPolicy", keeping("secrets", ""))
	w.awaitFinalizerAdded("sec")
	w.make(`
		sec owner
		rc  leaf owners=(owner!block)
	`)
	kept := w.keptBy("owner")
	w.awaitLetThrough("owner", foreground)
	w.alive(kept...)
	w.mustSay(w.mustAsk("plan", "secret", "owner", "--cascade=foreground"), "2 objects are deleted in 3 steps, 60 are kept")
	w.mustKubectl("delete", "secret", "owner", "--cascade=foreground")
	w.awaitGone("owner", "leaf")
	w.mustHaveNoOwner(kept)
}

func TestForegroundIsRefusedWhereTheBuiltInCollectorWouldNotWait(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, companion)
	w.policy("DeletionPolicy", `
  match:
    resources: [{apiGroups: ["", batch], resources: [secrets, jobs]}]
    HERE
  propagation:
    default: Background
    dependents: [{apiGroups: [""], resources: [configmaps], action: Orphan}]`)
	w.awaitFinalizerAdded("sec")
	w.make(`
		sec owner
		job bare
		cm  kept owners=(owner!block)
		cm  job-kept owners=(bare!block)
		rc  above
		sec middle  owners=(above!block)
		cm  below   owners=(middle)
	`)
	w.awaitFinalizers("bare", finalizer, metav1.FinalizerDeleteDependents)
	for name, options := range map[string]metav1.DeleteOptions{
		"owner": {PropagationPolicy: new(metav1.DeletePropagationForeground)},
		"bare":  {},
	} {
		if err := w.at(w.of(name)).Delete(w.Context(), w.of(name).name, options); err == nil || !strings.Contains(err.Error(), "some of its dependents are to be kept") {
			t.Errorf("delete of %s: %v, want it refused", name, err)
		}
	}
	w.alive("owner", "bare")
	// What the built-in collector deletes foreground itself is not asked about; a plan does not promise that it keeps anything.
	w.mustSay(w.mustAsk("plan", "rc", "above", "--cascade=foreground", "-o", "wide"), "In doubt:", "a garbage collector that is not Weir may delete dependents before they are released")
	w.delete("owner", background)
	w.delete("bare", background)
	w.awaitGone("owner", "bare")
	w.mustStay("kept", "job-kept")
}

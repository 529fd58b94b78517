package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryMixOfPolicyAndFinalizerEndsAsTheAPIServerSays deletes many at once:
// groups of five owners with three dependents each.
func TestEveryMixOfPolicyAndFinalizerEndsAsTheAPIServerSays(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	policies := map[string]struct {
		options metav1.DeleteOptions
		orphans func(finalizer string) bool
	}{
		"default": {metav1.DeleteOptions{}, // a ReplicationController's is to orphan
			func(f string) bool { return f != metav1.FinalizerDeleteDependents }},
		"orphandependents": {metav1.DeleteOptions{OrphanDependents: new(true)}, always},
		"nodependents":     {metav1.DeleteOptions{OrphanDependents: new(false)}, never},
		"background":       {metav1.DeleteOptions{PropagationPolicy: new(background)}, never},
		"foreground":       {metav1.DeleteOptions{PropagationPolicy: new(foreground)}, never},
		"orphan":           {metav1.DeleteOptions{PropagationPolicy: new(orphan)}, always},
	}
	finalizers := map[string]string{"none": "", "orphan": metav1.FinalizerOrphanDependents, "foreground": metav1.FinalizerDeleteDependents}
	var owners, gone, stay []string
	options := map[string]metav1.DeleteOptions{}
	for policy, p := range policies {
		for called, finalizer := range finalizers {
			for i := range 5 {
				boss := fmt.Sprintf("%s-%s-%d", policy, called, i)
				suffix := ""
				if finalizer != "" {
					suffix = " finalizers=(" + finalizer + ")"
				}
				w.make("rc " + boss + suffix)
				owners, options[boss] = append(owners, boss), p.options
				for _, leaf := range numbered(boss+"-leaf", 3) {
					w.make("cm " + leaf + " owners=(" + boss + ")")
					if p.orphans(finalizer) {
						stay = append(stay, leaf)
					} else {
						gone = append(gone, leaf)
					}
				}
			}
		}
	}
	for _, boss := range owners {
		w.deleteWith(boss, options[boss])
	}
	w.awaitGone(owners...)
	w.awaitGone(gone...)
	w.mustStay(stay...)
	for _, leaf := range stay {
		if have := w.owners(leaf); have != "" {
			t.Errorf("%s is still owned by (%s)", leaf, have)
		}
	}
	if len(stay)+len(gone) != 6*3*5*3 {
		t.Errorf("%d dependents, want %d", len(stay)+len(gone), 6*3*5*3)
	}
}

func always(string) bool { return true }
func never(string) bool  { return false }

//go:build full

package e2e

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	racing = flag.Int("arming.racing", 800, "how many objects are deleted while they get the finalizer")
)

// Objects that get the finalizer in the very moment in which they are deleted, by the
// webhook, by back-fill, and by updates: whatever comes first, no dependent is lost,
// and no object stays.
func TestDeletesRacingWithTheFinalizer(t *testing.T) {
	eachModeAlone(t, func(t *testing.T, w *fixture) {
		n := *racing
		owners, children := numbered("owner", n), numbered("child", n)
		w.makeAll(owners, children)
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan, allowed: [Orphan, Background]"))
		w.awaitFinalizerAdded("cm")
		w.awaitRefusal("delete", "configmap", owners[0], "--cascade=foreground")
		// The API server asks, and back-fill is still adding the finalizer, while all of them are
		// deleted and written.
		var group errgroup.Group
		group.SetLimit(64)
		for i, name := range owners {
			o := w.of(name)
			group.Go(func() error {
				if i%3 == 0 { // an update adds it too
					_, err := w.at(o).Patch(w.Context(), name, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"touched":"yes"}}}`), metav1.PatchOptions{})
					if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
						return err
					}
				}
				options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.uid}}
				if i%2 == 0 {
					options.PropagationPolicy = new(background)
				}
				err := w.at(o).Delete(w.Context(), name, options)
				if apierrors.IsNotFound(err) {
					return errors.New(name + " is gone before its deletion was allowed")
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		w.awaitGoneIn(2*patience, owners...) // some thousand requests
		w.mustStay(children...)
		list, err := w.dynamic.Resource(w.kinds["sec"].gvr()).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if refs := list.Items[i].GetOwnerReferences(); len(refs) > 0 {
				t.Fatalf("%s is still owned by %s", list.Items[i].GetName(), ownersText(refs))
			}
		}
	})
}

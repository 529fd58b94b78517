//go:build full

package e2e

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	collected = flag.Int("arming.collected", 200, "how many objects without the finalizer one deletecollection is about; the API server ends what takes longer than a minute")
	racing    = flag.Int("arming.racing", 800, "how many objects are deleted while they get the finalizer")
)

func TestDeletecollectionIsArmedAsAWhole(t *testing.T) {
	eachModeAlone(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		n := *collected
		owners, children := numbered("owner", n), numbered("child", n)
		w.makeAll(owners, children)
		w.removeFinalizer(owners...)
		began := time.Now()
		// A server with too much else to do ends the request after a minute, and says so or breaks
		// it off: its user sends it again.
		collect := func() error {
			return w.at(w.of(owners[0])).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		}
		err := collect()
		ended := func(err error) bool {
			return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || err != nil && strings.Contains(err.Error(), "stream error")
		}
		for tries := 1; tries < 4 && ended(err); tries++ {
			t.Logf("the API server ended it: %v", err)
			err = collect()
		}
		if err != nil {
			t.Fatal(err)
		}
		// It comes again after 18 s, and once more if the last object got the finalizer late: not
		// once for each object.
		t.Logf("deletecollection of %d objects that were never stamped took %s", n, time.Since(began).Round(time.Millisecond))
		if patched := w.requests(hookUser, owners...)["patch"]; patched > n+n/10 {
			t.Errorf("%d patches for %d objects", patched, n)
		}
		w.awaitGone(owners...)
		w.mustStay(children...)
		for _, name := range children {
			if refs := w.owners(name); refs != "" {
				t.Fatalf("%s is still owned by %s", name, refs)
			}
		}
	})
}

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

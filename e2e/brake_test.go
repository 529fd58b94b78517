package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/e2e/plane"
)

// mostByInference is the limit by default where that is more than a tenth of a kind.
const mostByInference = 500

// newHoldable is a fixture of its own, with a kind of owners that only this test has, and weir with
// the limits that users have.
func newHoldable(t *testing.T) (*fixture, *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	w := newCluster(t, plane.Options{})
	if err := installCRDs(t.Context(), w.plane); err != nil {
		t.Fatal(err)
	}
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(crd)
	return w, crd
}

// ownedByWidgets makes 600 objects with an owner each, and beside them an owner with a dependent,
// whose deletion a user will ask for.
func (w *fixture) ownedByWidgets() (owned []string) {
	w.Helper()
	owned = numbered("owned", 600)
	w.makePairs("widget", numbered("widget", 600), owned)
	w.make(`
		cm boss
		cm leaf owners=(boss)
	`)
	return owned
}

// TestBrakeHoldsReferencesThatAreWrittenByTheHundred has a controller write nonsense into 600
// objects. Of them few go; the others are held until they are repaired. Nothing that is in order
// waits.
func TestBrakeHoldsReferencesThatAreWrittenByTheHundred(t *testing.T) {
	t.Parallel()
	w, crd := newHoldable(t)
	w.startWeir()
	owners, owned := numbered("widget", 600), numbered("owned", 600)
	w.makePairs("widget", owners, owned)
	w.settle()
	w.rewrite(owned, func(string) types.UID { return uuid.NewUUID() })

	held := w.awaitCounted(crd.Name, owned)
	left := w.countLeft(owned)
	t.Logf("%d of %d are left; held: %s", left, len(owned), heldSays(held))
	if gone := len(owned) - left; gone > mostByInference {
		t.Errorf("%d objects were deleted, and %d are the limit", gone, mostByInference)
	}
	w.make(`
		cm boss
		cm leaf owners=(boss)
	`)
	w.delete("boss", background)
	w.awaitGone("leaf")
	w.settle() // that garbage whose owner is of another kind is collected

	// A decision about something else lets nothing go, and says so.
	w.proceed(crd.Name, "0123456789abcdef")
	w.until("the status tells that the decision is about something else", func(context.Context) (bool, error) {
		return strings.Contains(heldSays(w.heldNow(crd.Name)), "what is held has another"), nil
	})
	// Deleting the HeldCollection decides nothing.
	if err := w.dynamic.Resource(heldCollections).Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitHeld(crd.Name, left)
	w.settle()
	if now := w.countLeft(owned); now != left {
		t.Fatalf("%d are left, want %d", now, left)
	}

	w.rewrite(w.stillThere(owned), func(name string) types.UID { return w.of("widget" + strings.TrimPrefix(name, "owned")).uid })
	w.awaitNotHeld(crd.Name)
	w.settle()
	if now := w.countLeft(owned); now != left {
		t.Errorf("%d are left after they were repaired, want %d", now, left)
	}
}

// TestBrakeHoldsAtAColdStart starts weir where 600 objects have no owners: they went while no
// collector ran. How many go before it is seen that they are many is a matter of how soon their
// owners are looked up, and never more than the limit. A HeldCollection that a client made, who is
// not Weir, holds nothing.
func TestBrakeHoldsAtAColdStart(t *testing.T) {
	t.Parallel()
	w, crd := newHoldable(t)
	owned := w.ownedByWidgets()
	forged := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "weir.dev/v1beta1", "kind": "HeldCollection", "metadata": map[string]any{"name": "configmaps"},
		"spec": map[string]any{}, "status": map[string]any{"since": "2020-01-01T00:00:00Z"},
	}}
	if _, err := w.dynamic.Resource(heldCollections).Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.delete("boss", background)
	w.deleteAll("widget")
	w.startWeir()
	held := w.awaitCounted(crd.Name, owned)
	w.mustBeHeld(held, owned, "OwnerNotFound")
	w.awaitGone("leaf")
	w.proceed(crd.Name, status(held, "digest"))
	w.awaitGone(owned...)
	w.awaitNotHeld(crd.Name)
}

var heldCollections = schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "heldcollections"}

// status reads a field of an object's status as text; "" if it has none.
func status(u *unstructured.Unstructured, field string) string {
	if u == nil {
		return ""
	}
	v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "status", field)
	if !ok {
		return ""
	}
	return fmt.Sprint(v)
}

// heldSays is the message of a HeldCollection's condition; "" if it has none.
func heldSays(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	if conditions := conditionsOf(u); len(conditions) == 1 {
		return conditions[0].Message
	}
	return ""
}

// heldNow reads a HeldCollection; nil if there is none.
func (w *fixture) heldNow(name string) *unstructured.Unstructured {
	w.Helper()
	u, err := w.dynamic.Resource(heldCollections).Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return u
}

// awaitHeld waits until at least so many objects are held for owners of a kind.
func (w *fixture) awaitHeld(name string, least int) (held *unstructured.Unstructured) {
	w.Helper()
	w.until(fmt.Sprintf("%d objects are held for %s", least, name), func(context.Context) (bool, error) {
		if held = w.heldNow(name); held == nil {
			return false, nil
		}
		n, _, err := unstructured.NestedInt64(held.Object, "status", "held")
		return int(n) >= least, err
	})
	return held
}

// awaitCounted waits until all owners have been looked up, and what is held is all that is left of
// some objects.
func (w *fixture) awaitCounted(name string, owned []string) (held *unstructured.Unstructured) {
	w.Helper()
	w.until("all that is left is held for "+name, func(context.Context) (bool, error) {
		held = w.heldNow(name)
		return status(held, "held") == fmt.Sprint(w.countLeft(owned)), nil
	})
	return held
}

// mustBeHeld: no more objects went than may by inference, and the rest is held because of this
// conclusion. It returns how many are left.
func (w *fixture) mustBeHeld(held *unstructured.Unstructured, owned []string, because string) (left int) {
	w.Helper()
	left = w.countLeft(owned)
	w.Logf("%d of %d are left; held: %s", left, len(owned), heldSays(held))
	if gone := len(owned) - left; gone > mostByInference {
		w.Errorf("%d objects were deleted, and %d are the limit", gone, mostByInference)
	}
	if is := status(held, "conclusions"); is != "["+because+"]" {
		w.Errorf("held because of %s, want %s", is, because)
	}
	return left
}

func (w *fixture) awaitNotHeld(name string) {
	w.Helper()
	w.until("nothing is held for "+name, func(context.Context) (bool, error) { return w.heldNow(name) == nil, nil })
}

// proceed decides as a person does.
func (w *fixture) proceed(name, digest string) {
	w.Helper()
	w.decide(name, "Proceed", digest)
}

func (w *fixture) decide(name, decision, digest string) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"decision":%q,"digest":%q}}`, decision, digest)
	if _, err := w.dynamic.Resource(heldCollections).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) stillThere(names []string) []string {
	w.Helper()
	left, err := w.left(w.Context(), names)
	if err != nil {
		w.Fatal(err)
	}
	return left
}

func (w *fixture) countLeft(names []string) int {
	w.Helper()
	return len(w.stillThere(names))
}

// rewrite has objects be owned by others, many at a time, as a controller does that is wrong. What
// is gone by then is left out.
func (w *fixture) rewrite(names []string, owner func(name string) types.UID) {
	w.Helper()
	var group errgroup.Group
	group.SetLimit(32)
	for _, name := range names {
		o := w.of(name)
		change, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{{
			APIVersion: w.kinds["widget"].GroupVersion().String(), Kind: "Widget", Name: "widget" + strings.TrimPrefix(name, "owned"), UID: owner(name),
		}}}})
		if err != nil {
			w.Fatal(err)
		}
		group.Go(func() error {
			_, err := w.at(o).Patch(w.Context(), o.name, types.MergePatchType, change, metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
}

// deleteAll deletes all objects of a kind in the fixture's namespace.
func (w *fixture) deleteAll(short string) {
	w.Helper()
	gvr := w.kinds[short].gvr()
	if err := w.dynamic.Resource(gvr).Namespace(w.namespace).DeleteCollection(w.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		w.Fatal(err)
	}
	w.until("they are gone", func(ctx context.Context) (bool, error) {
		list, err := w.dynamic.Resource(gvr).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
	maps.DeleteFunc(w.made, func(_ string, o object) bool { return o.gvr() == gvr })
}

// awaitEventOn waits for an Event on a cluster-scoped object whose message has these words.
func (w *fixture) awaitEventOn(kind, name, reason string, words ...string) {
	w.Helper()
	w.until("there is an Event "+reason+" on "+kind+" "+name, func(ctx context.Context) (bool, error) {
		list, err := w.typed.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name + ",reason=" + reason,
		})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(list.Items[i].Message, word) }) {
				return true, nil
			}
		}
		return false, nil
	})
}

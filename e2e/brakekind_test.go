package e2e

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAKindThatIsNotServedAnyMoreTakesNothingWithIt: the API of 600 owners is switched off, as
// where an upgrade drops a version, or an API server loses a group. Who owns what is not known
// then, so nothing of theirs goes, all else does, also by a Weir that starts then, and when it is
// served again it is as it was.
func TestAKindThatIsNotServedAnyMoreTakesNothingWithIt(t *testing.T) {
	t.Parallel()
	w, crd := newHoldable(t)
	w.startWeir()
	owned := w.ownedByWidgets()
	w.serves(crd, false)
	w.again(w.weir)
	w.delete("boss", background)
	w.awaitGone("leaf")
	if err := w.weir.AwaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.countLeft(owned); left != len(owned) {
		t.Errorf("%d of %d are left while their owners' kind is not served", left, len(owned))
	}
	w.serves(crd, true)
	w.settle()
	if left := w.countLeft(owned); left != len(owned) {
		t.Errorf("%d of %d are left when it is served again", left, len(owned))
	}
	if held := w.heldNow(crd.Name); held != nil {
		t.Errorf("something is held: %s", heldSays(held))
	}
	w.delete("widget-0", background)
	w.awaitGone(owned[0])
}

// serves switches the only version of a kind on or off, and returns when the API server does what
// that says.
func (w *fixture) serves(crd *apiextensionsv1.CustomResourceDefinition, served bool) {
	w.Helper()
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/versions/0/served","value":%t}]`, served)
	if _, err := w.crds().Patch(w.Context(), crd.Name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
	gvr := w.kinds[crd.Spec.Names.Singular].gvr()
	w.until(fmt.Sprintf("%s is served: %t", crd.Name, served), func(ctx context.Context) (bool, error) {
		_, err := w.dynamic.Resource(gvr).Namespace(w.namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		return served == (err == nil), nil
	})
}

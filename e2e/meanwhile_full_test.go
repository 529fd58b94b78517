//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A controller that puts Weir's finalizer back, whenever it is not there, holds nothing up: the API
// server takes no finalizer for what terminates.
func TestFinalizerThatIsPutBackHoldsNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  one finalizers=(example.com/hold)
			sec kept owners=(one!block)
		`)
		w.awaitFinalizers("one", "example.com/hold", finalizer)
		w.delete("one", background)
		w.awaitFinalizers("one", "example.com/hold") // Weir's work is done
		w.awaitOwners("kept", "")
		o := w.of("one")
		_, err := w.at(o).Patch(t.Context(), o.name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":["example.com/hold",%q]}}`, finalizer), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("the finalizer is put back: %v", err)
		}
		w.unfinalize("one")
		w.awaitGone("one")
		w.mustStay("kept")
	})
}

// A webhook can put it back (RB 6.35). Then the object says what it waits for, and is tried ever
// less; when the webhook stops, it goes.
func TestFinalizerThatAWebhookPutsBackIsToldAndEnds(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  one
			cm  other
			sec kept owners=(one!block)
		`)
		h := w.newHook(true, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			var now struct{ Metadata metav1.ObjectMeta }
			if r.Name != "one" || r.Operation != admissionv1.Update || json.Unmarshal(r.Object.Raw, &now) != nil || slices.Contains(now.Metadata.Finalizers, finalizer) {
				return nil
			}
			return change([]any{map[string]any{"op": "add", "path": "/metadata/finalizers", "value": append(now.Metadata.Finalizers, finalizer)}})
		})
		w.Cleanup(func() { // before the hook ends, and the policy
			hooks := w.typed.AdmissionregistrationV1().MutatingWebhookConfigurations()
			if err := hooks.Delete(context.WithoutCancel(w.Context()), w.namespace, metav1.DeleteOptions{}); err != nil {
				w.Error(err)
			}
		})
		w.delete("one", background)
		e := w.awaitEvent("one", "CollectionRefused")
		w.mustSay(e.Message, "nothing changed: a mutating webhook may be undoing it")
		// A few may change something, such as orphan, and be tried at once after that; then the
		// next ones come after 50, 100, 200 … ms.
		var seen []time.Time
		w.until("it is tried ever less", func(context.Context) (bool, error) {
			seen = h.seen("one")
			return len(seen) > 20 || len(seen) > 1 && seen[len(seen)-1].Sub(seen[len(seen)-2]) > 300*time.Millisecond, nil
		})
		if len(seen) > 20 {
			t.Error("it was tried more than 20 times, and never waited 300 ms: it spins")
		}
		w.awaitOwners("kept", "")
		w.awaitTerminating("one")
		w.delete("other", background)
		w.awaitGone("other")
		h.allow()
		w.awaitGone("one")
		w.mustStay("kept")
	})
}

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestRefusal has a cluster of its own, in which some object always waits for
// its next try.
func TestRefusal(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, plane.Options{})
	cluster.startWeir()
	in := func(test func(*fixture)) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			test(fixtureIn(t, cluster.cluster))
		}
	}
	for _, code := range []int32{403, 404, 409, 500} {
		t.Run(fmt.Sprintf("RefusedObjectIsTriedEverLess/%d", code), in(func(w *fixture) { refusedObjectIsTriedEverLess(w, code) }))
	}
	t.Run("ThrottledObjectIsTriedWhenTheWebhookSaid", in(throttledObjectIsTriedWhenTheWebhookSaid))
	t.Run("WebhookThatIsDownHoldsUpOnlyItsOwn", in(webhookThatIsDownHoldsUpOnlyItsOwn))
	t.Run("OrphaningWaitsForWhatMayNotBeChanged", in(orphaningWaitsForWhatMayNotBeChanged))
	t.Run("ForegroundOwnerWaitsForWhatMayNotBeDeleted", in(foregroundOwnerWaitsForWhatMayNotBeDeleted))
	t.Run("PatchThatIsUndoneIsTriedEverLess", in(patchThatIsUndoneIsTriedEverLess))
}

// refusedObjectIsTriedEverLess: the code is the webhook's choice and proves
// nothing, least of all that the object is gone.
func refusedObjectIsTriedEverLess(w *fixture, code int32) {
	w.make(`
		cm boss
		cm held  owners=(boss)
		cm free  owners=(boss)
	`)
	h := w.newHook(false, named("held", refusal(code, 0)))
	w.delete("boss", background)
	w.awaitGone("boss", "free")

	h.mustNotSpin("held")
	e := w.awaitEvent("held", "CollectionRefused")
	for _, want := range []string{"cannot delete", "denied the request: not today", "owner is gone: ConfigMap " + w.namespace + "/boss"} {
		if !strings.Contains(e.Message, want) {
			w.Errorf("the Event does not say %q: %s", want, e.Message)
		}
	}
	if e.Source.Component != "weir" {
		w.Errorf("the Event is from %s", e.Source.Component)
	}
	w.alive("held")

	h.allow()
	w.awaitGone("held")
	if n := told(w.events("held", "CollectionRefused")); n != 1 {
		w.Errorf("the refusal was told %d times", n)
	}
	w.awaitRequests(weirUser, "delete", len(h.seen("held")), "held")
	if have := w.requests(weirUser, "held"); have["delete"] != len(h.seen("held")) || len(have) != 1 {
		w.Errorf("requests for %d reviews: %v", len(h.seen("held")), have)
	}
}

// mustNotSpin waits for some tries of an object, each of which has to come later
// after the one before: 20, 40, 80 … ms.
func (h *hook) mustNotSpin(name string) {
	h.w.Helper()
	const tries = 7
	seen := h.awaitSeen(name, tries)
	// One may come because the watch shows a change, and the first answers take longer than the
	// last.
	least := 20 * time.Millisecond * (1<<(tries-2) - 1) / 2
	if took := seen[tries-1].Sub(seen[0]); took < least {
		h.w.Errorf("%d tries of %s in %s: it spins", tries, name, took)
	}
}

// throttledObjectIsTriedWhenTheWebhookSaid: who says when to come back is not in the way for
// good, and no user has to be told.
func throttledObjectIsTriedWhenTheWebhookSaid(w *fixture) {
	w.make(`
		cm boss
		cm held  owners=(boss)
		cm free  owners=(boss)
	`)
	h := w.newHook(false, named("held", refusal(429, 1)))
	w.delete("boss", background)
	w.awaitGone("boss", "free")
	seen := h.awaitSeen("held", 3)
	if took := seen[2].Sub(seen[0]); took < 2*time.Second {
		w.Errorf("3 tries in %s, although each was told to wait a second", took)
	}
	w.alive("held")
	h.allow()
	w.awaitGone("held")
	if n := told(w.events("held", "CollectionRefused")); n != 0 {
		w.Errorf("the refusal was told %d times", n)
	}
}

// webhookThatIsDownHoldsUpOnlyItsOwn: that may pass, and is told only when it
// lasts.
func webhookThatIsDownHoldsUpOnlyItsOwn(w *fixture) {
	w.make(`
		sec boss
		cm  held  owners=(boss)
		sec free  owners=(boss)
	`)
	h := w.newHook(false, nil)
	h.server.Close()
	w.delete("boss", background)
	w.awaitGone("boss", "free")
	if e := w.awaitEvent("held", "CollectionRefused"); !strings.Contains(e.Message, "failed calling webhook") {
		w.Errorf("the Event says: %s", e.Message)
	}
	w.alive("held")
	h.remove()
	w.awaitGone("held")
}

// orphaningWaitsForWhatMayNotBeChanged: an owner that went before its dependents
// are released would have them collected.
func orphaningWaitsForWhatMayNotBeChanged(w *fixture) {
	w.make(`
		cm boss
		cm held  owners=(boss)
		cm free  owners=(boss)
	`)
	h := w.newHook(false, named("held", refusal(403, 0)))
	w.delete("boss", orphan)
	w.awaitOwners("free", "")
	h.awaitSeen("held", 5)
	if left, err := w.left(w.Context(), []string{"boss", "free", "held"}); err != nil || len(left) != 3 {
		w.Errorf("left: %v, %v; want all", left, err)
	}
	if e := w.awaitEvent("held", "CollectionRefused"); !strings.Contains(e.Message, "cannot remove owner references from it") {
		w.Errorf("the Event says: %s", e.Message)
	}
	h.allow()
	w.awaitGone("boss")
	w.alive("held", "free")
	if have := w.owners("held"); have != "" {
		w.Errorf("the owners of held are (%s)", have)
	}
}

func foregroundOwnerWaitsForWhatMayNotBeDeleted(w *fixture) {
	w.make(`
		cm boss
		cm held  owners=(boss!block)
		cm free  owners=(boss!block)
	`)
	h := w.newHook(false, named("held", refusal(403, 0)))
	w.delete("boss", foreground)
	w.awaitGone("free")
	h.awaitSeen("held", 5)
	if left, err := w.left(w.Context(), []string{"boss", "held"}); err != nil || len(left) != 2 {
		w.Errorf("left: %v, %v; want both", left, err)
	}
	h.allow()
	w.awaitGone("held", "boss")
}

// patchThatIsUndoneIsTriedEverLess: a mutating webhook puts an owner reference back, and
// the API server says that all went well.
func patchThatIsUndoneIsTriedEverLess(w *fixture) {
	w.make(`
		cm staying
		cm leaving
		cm leaf  owners=(staying, leaving)
	`)
	leaving := w.reference("leaving")
	h := w.newHook(true, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if r.Name != "leaf" || r.Operation != admissionv1.Update {
			return nil
		}
		patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/metadata/ownerReferences/-", "value": leaving}})
		if err != nil {
			return refusal(http.StatusInternalServerError, 0)
		}
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: new(admissionv1.PatchTypeJSONPatch)}
	})
	w.delete("leaving", background)
	h.mustNotSpin("leaf")
	if e := w.awaitEvent("leaf", "CollectionRefused"); !strings.Contains(e.Message, "nothing changed: a mutating webhook may be undoing it") {
		w.Errorf("the Event says: %s", e.Message)
	}
	w.alive("leaf", "staying")
	h.allow()
	w.awaitOwners("leaf", "staying")
	w.alive("leaf", "staying")
	have := w.requests(weirUser, "leaf")
	if have["get"] == 1 {
		delete(have, "get") // the first patch left its mark in managedFields, and was tried again before the watch showed that
	}
	if have["patch"] == 0 || len(have) != 1 {
		w.Errorf("requests: %v, want patches only", have)
	}
}

package e2e

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"
)

// namespaceController is the built-in one, in a cluster with all controllers.
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// configsPodsRest is an order.
const configsPodsRest = `
  HERE
  waves:
  - {name: configs, resources: [{apiGroups: [""], resources: [configmaps]}]}
  - {name: pods, resources: [{apiGroups: [""], resources: [pods]}]}
  - {name: rest, resources: [{apiGroups: [""], resources: [secrets]}]}`

// refused are the kinds of which deletes by a user were refused by a webhook.
func (w *fixture) refused(user string) []string {
	w.Helper()
	var kinds []string
	for _, r := range w.audit(user) {
		if r.Status.Code == http.StatusConflict && (r.Verb == "delete" || r.Verb == "deletecollection") && !slices.Contains(kinds, r.Object.Resource) {
			kinds = append(kinds, r.Object.Resource)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// TestNamespaceControllerWaitsForTheWavesOfAPolicy: beside it Weir keeps the
// order, and sees to it that the namespace goes when it is empty.
func TestNamespaceControllerWaitsForTheWavesOfAPolicy(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, companion)
	w.policy("DrainPolicy", configsPodsRest)
	w.make(`
		sec keys
		po  web   finalizers=(example.com/hold)
		cm  conf  finalizers=(example.com/hold)
	`)
	uid := w.drop()
	w.awaitWave("configs")
	w.awaitConditions("WeirDraining=True Waiting: wave 1 of 3 (configs): waiting for 1 configmaps (1 terminating): configmaps " + w.namespace + "/conf is held…")
	w.until("the namespace controller was refused", func(context.Context) (bool, error) {
		kinds := w.refused(namespaceController)
		return slices.Contains(kinds, "pods") && slices.Contains(kinds, "secrets"), nil
	})
	w.alive("web", "keys")
	// A user who may edit the namespace says that its turn has come; that is not believed.
	now := time.Now().UTC().Format(time.RFC3339Nano)
	w.annotate(`{"metadata":{"annotations":{"weir.dev/drain":"rest","weir.dev/drain-since":"` + now + `"}}}`)
	if again := w.awaitWave("configs"); again.Format(time.RFC3339Nano) == now {
		t.Error("the wave began when somebody else says")
	}
	w.alive("web", "keys")
	w.unfinalize("conf")

	w.awaitWave("pods")
	w.awaitTerminating("web")
	w.alive("keys")
	w.unfinalize("web")
	w.awaitGone("web", "keys")
	began := time.Now()
	w.awaitDropped(uid)
	// The namespace controller looks 5 s after a change.
	if took := time.Since(began); took > 20*time.Second { // alone on a machine: less than 10
		t.Errorf("the namespace went %s after its last object", took)
	}
}

// TestCompanionLeavesOtherNamespacesAlone: no policy selects it.
func TestCompanionLeavesOtherNamespacesAlone(t *testing.T) {
	t.Parallel()
	w := newEnforced(t, companion)
	w.make("cm conf")
	w.awaitDropped(w.drop())
	for verb, n := range w.requests(weirUser) {
		if verb != "get" {
			t.Errorf("weir sent %d %s", n, verb)
		}
	}
}

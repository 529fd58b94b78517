package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// lifted are flags of a kube-controller-manager whose collectors are as fast as they can be: what
// holds them holds slower ones.
var lifted = []string{"--kube-api-qps=2000", "--kube-api-burst=4000"}

// newHoldableCompanion is newHoldable with a built-in collector, which Weir holds past the limits
// that users have.
func newHoldableCompanion(t *testing.T, controllers plane.Controllers, flags ...string) (*fixture, pair, *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	flags = append([]string{"--brake-most=5000", "--brake-users=" + builtinCollector}, flags...)
	w, p := newPaired(t, companion, plane.Options{Controllers: controllers, ControllerManagerFlags: lifted, Audit: true}, flags...)
	w.until("the API server asks before what the collector deletes", func(ctx context.Context) (bool, error) {
		return slices.Contains(w.webhooksWritten(ctx), "brake.weir.dev"), nil
	})
	crd := w.definition("Widget", apiextensionsv1.NamespaceScoped, "v1")
	w.define(crd)
	return w, p, crd
}

// TestBuiltInCollectorIsHeldPastTheLimits: where the built-in collector collects, a definition goes
// with 600 instances. What these own is held, also by the webhook and the controller that come
// after those that are killed, and whatever asks for a delete of its owner goes on.
func TestBuiltInCollectorIsHeldPastTheLimits(t *testing.T) {
	t.Parallel()
	w, p, crd := newHoldableCompanion(t, plane.None)
	owned := w.ownedByWidgets()
	w.startCollector() // it has all owners
	// The end of a kind ends its watches, be there deletes that they have not shown: the built-in
	// collector would then know none of the owners to be gone.
	w.make("widget last finalizers=(example.com/hold)")
	w.beginUndefine(crd)

	held := w.awaitCounted(crd.Name, owned)
	w.delete("boss", background) // a user asks for that
	w.awaitGone("leaf")
	left := w.mustBeHeld(held, owned, "DefinitionGone")
	w.awaitEventOn("HeldCollection", crd.Name, "CollectionHeld", "kubectl patch held "+crd.Name)
	w.patch("last", `{"metadata":{"finalizers":null}}`)
	w.awaitUndefined(crd)

	if err := w.plane.StopController(); err != nil { // first: the API server lets it delete while it reaches no webhook
		t.Fatal(err)
	}
	p.hook.Kill()
	p.controller.Kill()
	for _, again := range []interface{ Restart(context.Context) error }{p.hook, p.controller} {
		if err := again.Restart(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	crd.ResourceVersion, crd.UID = "", "" // the owners are known to be gone when their kind is served again
	w.define(crd)
	if err := w.plane.StartController(context.WithoutCancel(t.Context()), plane.Collectors, lifted...); err != nil {
		t.Fatal(err)
	}
	w.awaitCollectorRefused(5)
	w.until("the weir that was started says how many", func(context.Context) (bool, error) {
		held = w.heldNow(crd.Name)
		return status(held, "conclusions") == "[OwnerNotFound]" && status(held, "held") == strconv.Itoa(w.countLeft(owned)), nil
	})
	if now := w.countLeft(owned); now != left {
		t.Errorf("%d are left after the restart, want %d", now, left)
	}
	w.proceed(crd.Name, status(held, "digest"))
	w.awaitGone(owned...)
	w.awaitNotHeld(crd.Name)
}

// webhooksWritten are the names of the entries that the API server knows of Weir's validating
// webhooks.
func (w *fixture) webhooksWritten(ctx context.Context) (names []string) {
	w.Helper()
	configuration, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "weir", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	for i := range configuration.Webhooks {
		names = append(names, configuration.Webhooks[i].Name)
	}
	return names
}

// awaitCollectorRefused waits until the built-in collector was told to come again, from now on, at
// least so many times.
func (w *fixture) awaitCollectorRefused(times int) {
	w.Helper()
	refused := func() int {
		return len(slices.DeleteFunc(w.audit(builtinCollector), func(r request) bool { return r.Verb != "delete" || r.Status.Code != http.StatusTooManyRequests }))
	}
	before := refused()
	w.until("the built-in collector is refused", func(context.Context) (bool, error) { return refused() >= before+times, nil })
}

// startCollector starts kube-controller-manager with the built-in collectors, and returns when they
// work.
func (w *fixture) startCollector() {
	w.Helper()
	if err := w.plane.StartController(context.WithoutCancel(w.Context()), plane.Collectors, lifted...); err != nil {
		w.Fatal(err)
	}
	name := fmt.Sprint("begins-", time.Now().UnixNano())
	w.make(fmt.Sprintf("cm %s\ncm %s-leaf owners=(%s)", name, name, name))
	w.delete(name, background)
	w.awaitGoneIn(collectorBegins, name+"-leaf")
}

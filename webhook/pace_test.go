package webhook

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies"
)

// What a user can bring about is refused, whatever the failurePolicy: 429, and clients come again.
func TestReviewThatAsksTooMuchIsToComeAgain(t *testing.T) {
	withFixture(t, func(b *fixture) {
		b.policies(kept)
		b.api.Put("configmaps",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {kept: "yes"}}}`)
		config := b.api.Config()
		config.RateLimiter = newPace(0.1, 1) // enough for the read, and not for the write
		arm, err := newArmer(Options{Config: config, Policies: b.state, ArmingWindow: DefaultArmingWindow,
			Log: logr.Discard()}, testMetrics(t))
		if err != nil {
			b.Fatal(err)
		}
		j := &judge{policies: b.state, arm: arm, metrics: testMetrics(t), log: newSayer(logr.Discard())}
		a := j.answer(b.Context(), policies.WebhookDelete,
			policies.Question{Operation: policies.Delete, Resource: configMaps, Namespace: "shop", Name: "one",
				OldObject: map[string]any{"metadata": map[string]any{"name": "one", "namespace": "shop", "uid": "uid-one",
					"labels": map[string]any{"kept": "yes"}}}})
		if a.err != nil || a.response.Allowed || a.response.Result.Code != 429 ||
			a.response.Result.Details.RetryAfterSeconds != 1 {
			b.Errorf("%+v", a)
		}
	})
}

// TestPoliciesOnTrialRefuseNothingWhenTooMuchIsAsked: the answer is an error, which their
// failurePolicy lets pass.
func TestPoliciesOnTrialRefuseNothingWhenTooMuchIsAsked(t *testing.T) {
	for actions, refused := range map[string]bool{"[Deny]": true, "[Warn]": false} {
		withFixture(t, func(b *fixture) {
			b.policies(`{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: asked}, spec: {match: {resources: [{apiGroups: [""], resources: [pods]}]}, changes: RequirePermission, validationActions: ` + actions + `}}`)
			config := b.api.Config()
			config.RateLimiter = newPace(0.1, 1) // enough for one of two questions
			access, err := newAccess(config)
			if err != nil {
				b.Fatal(err)
			}
			j := &judge{policies: b.state, access: access, pace: newPace(1000, 1000), metrics: testMetrics(t),
				log: newSayer(logr.Discard())}
			metadata := func(owners ...any) map[string]any {
				return map[string]any{"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "w",
					"ownerReferences": owners}}
			}
			var last answer
			for range 2 {
				last = j.answer(b.Context(), policies.WebhookOwners, policies.Question{Operation: policies.Update,
					Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "shop",
					Name: fmt.Sprint("web", len(b.asked())),
					User: policies.User{Name: "alice"}, OldObject: metadata(),
					Object: metadata(map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "o"})})
			}
			if refused && (last.err != nil || last.response.Result.Code != 429) || !refused && !errors.Is(last.err, errBusy) {
				b.Errorf("%s: %+v", actions, last)
			}
		})
	}
}

func TestPermissionsThatCannotBeAskedForNowSaySo(t *testing.T) {
	withFixture(t, func(b *fixture) {
		config := b.api.Config()
		config.RateLimiter = newPace(0.1, 1)
		a, err := newAccess(config)
		if err != nil {
			b.Fatal(err)
		}
		_, err = a.ask(b.Context(), policies.User{Name: "alice"},
			[]policies.Access{{Verb: "get", Resource: "a"}, {Verb: "get", Resource: "b"}})
		if !errors.Is(err, errBusy) {
			b.Errorf("error %v", err)
		}
	})
}

// Whoever sends reviews can name a Namespace in each that was not seen yet: these are read in their
// turn, and what was seen is judged without it. Adding the finalizer is waited for by no one, so it
// is an error there, which lets the request pass.
func TestNamespacesThatWereNotSeenAreReadInTheirTurn(t *testing.T) {
	withFixture(t, func(b *fixture) {
		b.policies(kept)
		arm, err := newArmer(Options{Config: b.api.Config(), Policies: b.state, ArmingWindow: DefaultArmingWindow,
			Log: logr.Discard()}, testMetrics(t))
		if err != nil {
			b.Fatal(err)
		}
		j := &judge{policies: b.state, arm: arm, pace: newPace(0.1, 1), metrics: testMetrics(t),
			log: newSayer(logr.Discard())}
		for _, c := range []struct {
			namespace string
			asked     policies.Webhook
			want      string
		}{
			{"new", policies.WebhookDelete, "passes"},
			{"newer", policies.WebhookDelete, "429"},
			{"newer", policies.WebhookAddFinalizer, "error"},
			{"shop", policies.WebhookDelete, "passes"},
		} {
			a := j.answer(b.Context(), c.asked, policies.Question{Operation: policies.Delete, Resource: configMaps,
				Namespace: c.namespace, Name: "one",
				OldObject: map[string]any{"metadata": map[string]any{"name": "one", "namespace": c.namespace, "uid": "u"}}})
			got := "error"
			switch {
			case a.err == nil && a.response.Allowed:
				got = "passes"
			case a.err == nil:
				got = fmt.Sprint(a.response.Result.Code)
			}
			if got != c.want {
				t.Errorf("%s in %s: %s (%v), want %s", c.asked, c.namespace, got, a.err, c.want)
			}
		}
	})
}

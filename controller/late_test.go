package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/policies/apitest"
)

// slow is a webhook of others that sees ConfigMaps being created.
func slow() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{Name: "slow.example.com", Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}}
}

func TestEmptyNamespaceIsGoneAtOnce(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(100 * time.Millisecond)
		c.mustBeGone("namespaces/shop")
	})
}

func TestWhatASlowWebhookLetsThroughWithin5sHoldsTheNamespace(t *testing.T) {
	inTown(t, func(c *town) {
		c.hooks = append(c.hooks, slow())
		c.found("shop", "first")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "early")
		c.start()
		c.end("shop")
		c.pass(3 * time.Second)
		c.mustBeGone("configmaps/shop/early") // deletes wait for nothing
		c.mustBeThere("namespaces/shop")
		want := "True Waiting: waiting for content that may still arrive: creates that began before the deletion may be with admission webhook slow.example.com"
		if got := c.condition("shop", drain.Draining); got != want {
			t.Errorf("the condition is %q, want %q", got, want)
		}
		c.fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.pass(3 * time.Second)
		c.mustBeGone("namespaces/shop", "configmaps/shop/late")
		if told := c.told(""); len(told) > 0 {
			t.Errorf("Events: %v", told)
		}
	})
}

func TestWhichWebhooksANamespaceWaitsFor(t *testing.T) {
	elsewhere := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "elsewhere"}}
	rule := func(h admissionregistrationv1.ValidatingWebhook, change func(*admissionregistrationv1.RuleWithOperations)) admissionregistrationv1.ValidatingWebhook {
		change(&h.Rules[0])
		return h
	}
	for name, c := range map[string]struct {
		hook  admissionregistrationv1.ValidatingWebhook
		waits bool
	}{
		"creates": {slow(), true},
		"everything": {rule(slow(), func(r *admissionregistrationv1.RuleWithOperations) {
			r.Operations, r.APIGroups, r.Resources = []admissionregistrationv1.OperationType{"*"}, []string{"*"}, []string{"*/*"}
		}), true},
		"updates":      {rule(slow(), func(r *admissionregistrationv1.RuleWithOperations) { r.Operations[0] = admissionregistrationv1.Update }), false},
		"subresources": {rule(slow(), func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = []string{"pods/*", "*/status"} }), false},
		"cluster scope": {rule(slow(), func(r *admissionregistrationv1.RuleWithOperations) {
			r.Scope = new(admissionregistrationv1.ClusterScope)
			r.Resources = []string{"*"}
		}), false},
		"namespaces":       {rule(slow(), func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = []string{"namespaces"} }), false},
		"other groups":     {rule(slow(), func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = []string{"apps"} }), false},
		"other namespaces": {admissionregistrationv1.ValidatingWebhook{Name: "x", NamespaceSelector: elsewhere, Rules: slow().Rules}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inTown(t, func(town *town) {
				town.hooks = append(town.hooks, c.hook)
				town.found("shop", "first")
				town.start()
				town.end("shop")
				town.pass(4 * time.Second)
				if gone := town.api.Get("namespaces/shop") == nil; gone == c.waits {
					t.Errorf("gone=%t, want %t", gone, !c.waits)
				}
				town.pass(2 * time.Second)
				town.mustBeGone("namespaces/shop")
			})
		})
	}
}

// While the graph follows the configurations, nobody is asked again.
func TestWebhooksAreReadOnceUntilTheyChange(t *testing.T) {
	inTown(t, func(c *town) {
		for _, kind := range []string{"Mutating", "Validating"} {
			c.serve("admissionregistration.k8s.io/v1", strings.ToLower(kind)+"webhookconfigurations", kind+"WebhookConfiguration", false, everything)
		}
		for i := range 3 {
			c.found(fmt.Sprintf("shop-%d", i), "")
		}
		c.start()
		c.end("shop-0")
		c.pass(time.Second)
		if asked := c.asked("GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"); len(asked) < 2 { // the watch, too
			t.Errorf("asked: %v", asked)
		}
		c.end("shop-1")
		c.pass(time.Second)
		if asked := c.asked("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"); len(asked) != 0 {
			t.Errorf("asked again: %v", asked)
		}
		c.mustBeGone("namespaces/shop-0", "namespaces/shop-1")
		c.mu.Lock()
		c.hooks = append(c.hooks, slow())
		c.mu.Unlock()
		c.api.Put("validatingwebhookconfigurations", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: others}}")
		c.pass(time.Millisecond) // the API servers hear of it by a watch, too
		c.end("shop-2")
		c.pass(4 * time.Second)
		c.mustBeThere("namespaces/shop-2")
		c.pass(2 * time.Second)
		c.mustBeGone("namespaces/shop-2")
	})
}

func TestWebhooksThatCannotBeReadCountAsOne(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.reply(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Path, "webhookconfigurations") {
				return apitest.Refuse(403, "Forbidden", "not for you")
			}
			return nil
		})
		c.end("shop")
		c.pass(4 * time.Second)
		c.mustBeThere("namespaces/shop")
		if got := c.condition("shop", drain.Draining); !strings.Contains(got, "admission webhooks that are not known (list mutating webhook configurations: ") {
			t.Errorf("the condition is %q", got)
		}
		c.pass(2 * time.Second)
		c.mustBeGone("namespaces/shop")
	})
}

func TestWhatTurnsUpInANamespaceThatIsGoneIsDeleted(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(time.Second)
		c.mustBeGone("namespaces/shop")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.pass(time.Second)
		c.mustBeGone("configmaps/shop/late")
		c.pass(30 * time.Second)
		c.fill("v1", "configmaps", "ConfigMap", "shop", "later")
		c.pass(time.Second)
		c.mustBeGone("configmaps/shop/later")
	})
}

// The graph does not follow it: it is looked for once, when all requests from before are over.
func TestLateContentOfKindsThatCannotBeWatchedIsLookedForWhereWebhooksAre(t *testing.T) {
	inTown(t, func(c *town) {
		c.serve("example.com/v1", "quiets", "Quiet", true, metav1.Verbs{"list", "delete"})
		c.hooks = append(c.hooks, slow())
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(6 * time.Second)
		c.mustBeGone("namespaces/shop")
		c.fill("example.com/v1", "quiets", "Quiet", "shop", "late")
		c.pass(lateFor)
		c.mustBeGone("quiets.example.com/shop/late")
	})
}

func TestANamespaceThatIsGoneCostsNothingMore(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(100 * time.Millisecond)
		c.mustBeGone("namespaces/shop")
		c.asked("")
		c.pass(2 * lateFor)
		if asked := c.asked("/shop"); len(asked) > 0 {
			t.Errorf("asked: %v", asked)
		}
	})
}

func TestANewNamespaceOfTheSameNameIsNotTouched(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(time.Second)
		// The object is there before the namespace, but who is to say when a request began.
		c.fill("v1", "configmaps", "ConfigMap", "shop", "whose")
		c.found("shop", "second")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "new")
		c.pass(2 * lateFor)
		c.mustBeThere("namespaces/shop", "configmaps/shop/whose", "configmaps/shop/new")
	})
}

func TestWhatMayBeLeftBehindIsKeptAndTold(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(2 * time.Second)
		// Both come while the namespace cannot be read.
		c.reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "GET" && r.Path == "/api/v1/namespaces/shop" {
				return apitest.Refuse(500, "InternalError", "not now")
			}
			return nil
		})
		c.fill("v1", "configmaps", "ConfigMap", "shop", "whose")
		c.pass(2 * time.Second)
		c.found("shop", "second")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "new")
		c.pass(time.Second)
		c.reply(nil)
		c.pass(lateFor)
		c.mustBeThere("configmaps/shop/whose", "configmaps/shop/new")
		if told := c.told(ReasonLeftBehind); len(told) != 1 || !strings.HasPrefix(told[0], "whose LeftBehind: ") {
			t.Errorf("Events: %v", told)
		}
	})
}

// A 404 of a load balancer, or of another path, is not about the namespace.
func TestOnlyTheAPIServerCanSayThatANamespaceIsGone(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.start()
		c.reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "GET" && r.Path == "/api/v1/namespaces/shop" {
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return nil
		})
		c.end("shop")
		c.pass(time.Minute)
		c.mustBeThere("namespaces/shop")
		c.reply(nil)
		c.pass(time.Minute)
		c.mustBeGone("namespaces/shop", "configmaps/shop/settings")
	})
}

func TestA404OfSomebodyElseIsNoReasonToDeleteWhatIsInANewNamespace(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(time.Second)
		c.reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "GET" && r.Path == "/api/v1/namespaces/shop" {
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return nil
		})
		c.found("shop", "second")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "new")
		c.pass(lateTrial)
		c.mustBeThere("configmaps/shop/new")
	})
}

// A webhook with a namespaceSelector cannot be asked about an object whose namespace is gone.
func TestLateContentThatCannotBeDeletedIsTriedAgain(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.end("shop")
		c.pass(time.Second)
		c.reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "DELETE" {
				return missing("namespaces", "shop")
			}
			return nil
		})
		c.fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.pass(2 * lateFor)
		c.mustBeThere("configmaps/shop/late")
		c.reply(nil)
		c.pass(2 * time.Minute)
		c.mustBeGone("configmaps/shop/late")
	})
}

func TestANewLeaderLooksForWhatTurnsUpLate(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		lead := c.follow()
		stop := c.start()
		c.end("shop")
		c.pass(time.Second)
		c.mustBeGone("namespaces/shop")
		stop()
		c.fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.pass(20 * time.Second)
		c.mustBeThere("configmaps/shop/late")
		lead()
		c.pass(time.Second)
		c.mustBeGone("configmaps/shop/late")
	})
}

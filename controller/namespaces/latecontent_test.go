package namespaces_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// slow is a webhook of others that sees ConfigMaps being created.
func slow() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{Name: "slow.example.com", Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}}
}

func TestEmptyNamespaceIsGoneAtOnce(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(100 * time.Millisecond)
		c.MustBeGone("namespaces/shop")
	})
}

func TestWhatASlowWebhookLetsThroughWithin5sHoldsTheNamespace(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Hook(slow())
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "early")
		c.Start()
		c.End("shop")
		c.Pass(3 * time.Second)
		c.MustBeGone("configmaps/shop/early") // deletes wait for nothing
		c.MustBeThere("namespaces/shop")
		want := "True Waiting: waiting for content that may still arrive: creates that began before the deletion may be with admission webhook slow.example.com"
		if got := c.Condition("shop", drain.Draining); got != want {
			t.Errorf("the condition is %q, want %q", got, want)
		}
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.Pass(3 * time.Second)
		c.MustBeGone("namespaces/shop", "configmaps/shop/late")
		want = "shop Cascade: 2 objects in it were deleted (2 configmaps) within 5s"
		if reported := c.Reported(""); len(reported) != 1 || reported[0] != want {
			t.Errorf("Events: %v, want what was deleted with the namespace, and nothing else: %q", reported, want)
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
			clustertest.Run(t, func(cluster *clustertest.Cluster) {
				cluster.Hook(c.hook)
				cluster.Found("shop", "first")
				cluster.Start()
				cluster.End("shop")
				cluster.Pass(4 * time.Second)
				if gone := cluster.API.Get("namespaces/shop") == nil; gone == c.waits {
					t.Errorf("gone=%t, want %t", gone, !c.waits)
				}
				cluster.Pass(2 * time.Second)
				cluster.MustBeGone("namespaces/shop")
			})
		})
	}
}

// While the graph follows the configurations, the API is not asked again.
func TestWebhooksAreReadOnceUntilTheyChange(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		for _, kind := range []string{"Mutating", "Validating"} {
			c.Serve("admissionregistration.k8s.io/v1", strings.ToLower(kind)+"webhookconfigurations", kind+"WebhookConfiguration", false, clustertest.AllVerbs)
		}
		for i := range 3 {
			c.Found(fmt.Sprintf("shop-%d", i), "")
		}
		c.Start()
		c.End("shop-0")
		c.Pass(time.Second)
		if asked := c.Asked("GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"); len(asked) < 2 { // the watch, too
			t.Errorf("asked: %v", asked)
		}
		c.End("shop-1")
		c.Pass(time.Second)
		if asked := c.Asked("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"); len(asked) != 0 {
			t.Errorf("asked again: %v", asked)
		}
		c.MustBeGone("namespaces/shop-0", "namespaces/shop-1")
		c.Hook(slow())
		c.API.Put("validatingwebhookconfigurations", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: others}}")
		c.Pass(time.Millisecond) // the API servers hear of it by a watch, too
		c.End("shop-2")
		c.Pass(4 * time.Second)
		c.MustBeThere("namespaces/shop-2")
		c.Pass(2 * time.Second)
		c.MustBeGone("namespaces/shop-2")
	})
}

func TestWebhooksThatCannotBeReadCountAsOne(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Path, "webhookconfigurations") {
				return apitest.Refuse(403, "Forbidden", "not for you")
			}
			return nil
		})
		c.End("shop")
		c.Pass(4 * time.Second)
		c.MustBeThere("namespaces/shop")
		if got := c.Condition("shop", drain.Draining); !strings.Contains(got, "admission webhooks that are not known (list mutating webhook configurations: ") {
			t.Errorf("the condition is %q", got)
		}
		c.Pass(2 * time.Second)
		c.MustBeGone("namespaces/shop")
	})
}

func TestWhatTurnsUpInANamespaceThatIsGoneIsDeleted(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(time.Second)
		c.MustBeGone("namespaces/shop")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.Pass(time.Second)
		c.MustBeGone("configmaps/shop/late")
		c.Pass(30 * time.Second)
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "later")
		c.Pass(time.Second)
		c.MustBeGone("configmaps/shop/later")
	})
}

// The graph does not follow it: it is looked for once, when all requests from before are over.
func TestLateContentOfKindsThatCannotBeWatchedIsLookedForWhereWebhooksAre(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "quiets", "Quiet", true, metav1.Verbs{"list", "delete"})
		c.Hook(slow())
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(6 * time.Second)
		c.MustBeGone("namespaces/shop")
		c.Fill("example.com/v1", "quiets", "Quiet", "shop", "late")
		c.Pass(40 * time.Second)
		c.MustBeGone("quiets.example.com/shop/late")
	})
}

func TestANamespaceThatIsGoneCostsNothingMore(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(100 * time.Millisecond)
		c.MustBeGone("namespaces/shop")
		c.Asked("")
		c.Pass(80 * time.Second)
		if asked := c.Asked("/shop"); len(asked) > 0 {
			t.Errorf("asked: %v", asked)
		}
	})
}

func TestANewNamespaceOfTheSameNameIsLeftAlone(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(time.Second)
		// The object is there before the namespace, but who is to say when a request began.
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "whose")
		c.Found("shop", "second")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "new")
		c.Pass(80 * time.Second)
		c.MustBeThere("namespaces/shop", "configmaps/shop/whose", "configmaps/shop/new")
	})
}

func TestWhatMayBeLeftBehindIsKeptAndTold(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(2 * time.Second)
		// Both come while the namespace cannot be read.
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "GET" && r.Path == "/api/v1/namespaces/shop" {
				return apitest.Refuse(500, "InternalError", "not now")
			}
			return nil
		})
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "whose")
		c.Pass(2 * time.Second)
		c.Found("shop", "second")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "new")
		c.Pass(time.Second)
		c.Reply(nil)
		c.Pass(40 * time.Second)
		c.MustBeThere("configmaps/shop/whose", "configmaps/shop/new")
		if reported := c.Reported(events.ReasonLeftBehind); len(reported) != 1 || !strings.HasPrefix(reported[0], "whose LeftBehind: ") {
			t.Errorf("Events: %v", reported)
		}
	})
}

// A 404 of a load balancer, or of another path, is not about the namespace.
func TestOnlyTheAPIServerCanSayThatANamespaceIsGone(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "GET" && r.Path == "/api/v1/namespaces/shop" {
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return nil
		})
		c.End("shop")
		c.Pass(time.Minute)
		c.MustBeThere("namespaces/shop")
		c.Reply(nil)
		c.Pass(time.Minute)
		c.MustBeGone("namespaces/shop", "configmaps/shop/settings")
	})
}

func TestA404OfAWebhookIsNoReasonToDeleteWhatIsInANewNamespace(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(time.Second)
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "GET" && r.Path == "/api/v1/namespaces/shop" {
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return nil
		})
		c.Found("shop", "second")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "new")
		c.Pass(10 * time.Minute)
		c.MustBeThere("configmaps/shop/new")
	})
}

// A webhook with a namespaceSelector cannot be asked about an object whose namespace is gone.
func TestLateContentThatCannotBeDeletedIsTriedAgain(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.End("shop")
		c.Pass(time.Second)
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == "DELETE" {
				return clustertest.Missing("namespaces", "shop")
			}
			return nil
		})
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.Pass(80 * time.Second)
		c.MustBeThere("configmaps/shop/late")
		c.Reply(nil)
		c.Pass(2 * time.Minute)
		c.MustBeGone("configmaps/shop/late")
	})
}

func TestANewLeaderLooksForWhatTurnsUpLate(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		lead := c.Follow()
		stop := c.Start()
		c.End("shop")
		c.Pass(time.Second)
		c.MustBeGone("namespaces/shop")
		stop()
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "late")
		c.Pass(20 * time.Second)
		c.MustBeThere("configmaps/shop/late")
		lead()
		c.Pass(time.Second)
		c.MustBeGone("configmaps/shop/late")
	})
}

package namespaces_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
	"github.com/weir-dev/weir/policies"
)

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
		c.Hook("others")
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "early")
		c.Start()
		c.End("shop")
		c.Pass(3 * time.Second)
		c.MustBeGone("configmaps/shop/early") // deletes wait for nothing
		c.MustBeThere("namespaces/shop")
		want := "True Waiting: waiting for content that may still arrive: creates that began before the deletion may be with admission webhooks of the configuration others"
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

// TestWebhookConfigurationsOfOthersAreWaitedFor: a create may be with one that is there, or that was
// there a moment ago. Weir's own create nothing late, and no request finds out which there are.
func TestWebhookConfigurationsOfOthersAreWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		hook  string
		gone  time.Duration // for so long when the namespace is deleted; 0: it is there
		waits bool
	}{
		"none":                 {"", 0, false},
		"Weir's":               {policies.WebhookConfigurations, 0, false},
		"there":                {"others", 0, true},
		"gone a moment ago":    {"others", time.Second, true},
		"gone half a minute":   {"others", 25 * time.Second, true},
		"gone longer than 40s": {"others", 50 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(cluster *clustertest.Cluster) {
				if c.hook != "" {
					cluster.Hook(c.hook)
				}
				cluster.Found("first", "")
				cluster.Found("shop", "")
				cluster.Start()
				if c.gone > 0 {
					cluster.API.Remove("validatingwebhookconfigurations.admissionregistration.k8s.io/" + c.hook)
					cluster.Pass(time.Second)
					cluster.End("first") // it is found gone with the next namespace
					cluster.Pass(c.gone - time.Second)
				}
				cluster.Asked("")
				cluster.End("shop")
				cluster.Pass(4 * time.Second)
				if gone := cluster.API.Get("namespaces/shop") == nil; gone == c.waits {
					t.Errorf("gone=%t, want %t", gone, !c.waits)
				}
				cluster.Pass(2 * time.Second)
				cluster.MustBeGone("namespaces/shop")
				if asked := cluster.Asked("webhookconfigurations"); len(asked) > 0 {
					t.Errorf("asked: %v", asked)
				}
			})
		})
	}
}

func TestWebhookConfigurationsThatCannotBeListedCountAsOne(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Path, "/mutatingwebhookconfigurations") {
				return apitest.Refuse(403, "Forbidden", "not for you")
			}
			return nil
		})
		c.Start()
		c.End("shop")
		c.Pass(4 * time.Second)
		c.MustBeThere("namespaces/shop")
		if got := c.Condition("shop", drain.Draining); !strings.Contains(got, "may be with admission webhooks that are not known") {
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

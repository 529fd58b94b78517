package namespaces_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
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

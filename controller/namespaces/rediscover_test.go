package namespaces_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// The periodic discovery might be half a minute away when the namespace would go.
func TestContentOfAKindThatCameJustBeforeTheDeletionGoesToo(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.Serve("example.com/v1", "widgets", "Widget", true, clustertest.AllVerbs)
		c.Fill("example.com/v1", "widgets", "Widget", "shop", "w")
		c.End("shop")
		c.Pass(2 * time.Second)
		c.MustBeGone("namespaces/shop", "widgets.example.com/shop/w")
	})
}

func TestDiscoveryThatFailsHoldsNamespacesAndIsNamed(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/apis" {
				return apitest.Refuse(503, "ServiceUnavailable", "nobody is there")
			}
			return nil
		})
		c.End("shop")
		c.Pass(10 * time.Minute)
		c.MustBeThere("namespaces/shop")
		c.MustBeGone("configmaps/shop/settings") // what goes without it goes
		if got := c.Condition("shop", corev1.NamespaceDeletionDiscoveryFailure); got != "True DiscoveryFailed: discover the kinds that the cluster serves: the server is currently unable to handle the request" {
			t.Errorf("the condition is %q", got)
		}
		c.Reply(nil)
		c.Pass(6 * time.Second)
		c.MustBeGone("namespaces/shop")
	})
}

// A 404 for /api is an empty core group to client-go.
func TestDiscoveryWithoutNamespacesIsNoAnswer(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Serve("example.com/v1", "widgets", "Widget", true, clustertest.AllVerbs)
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Path == "/api":
				return apitest.Refuse(404, "NotFound", "no such page")
			case r.Method == "DELETE":
				return apitest.Refuse(403, "Forbidden", "not today")
			}
			return nil
		})
		c.End("shop")
		c.Pass(5 * time.Minute)
		c.MustBeThere("namespaces/shop")
	})
}

func TestManyDeletionsShareADiscovery(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"}
		for _, name := range names {
			c.Found(name, "")
		}
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/apis" {
				<-time.After(20 * time.Millisecond) // it takes as long as a large one
			}
			return nil
		})
		c.Asked("")
		for _, name := range names {
			c.End(name)
			<-time.After(time.Millisecond)
		}
		c.Pass(time.Second)
		for _, name := range names {
			c.MustBeGone("namespaces/" + name)
		}
		if n := len(c.Asked("GET /apis timeout=")); n == 0 || n > 4 {
			t.Errorf("%d discoveries, want at most 4", n)
		}
	})
}

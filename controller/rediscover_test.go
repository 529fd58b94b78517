package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/policies/apitest"
)

// The periodic discovery might be half a minute away when the namespace would go.
func TestContentOfAKindThatCameJustBeforeTheDeletionGoesToo(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.start()
		c.serve("example.com/v1", "widgets", "Widget", true, everything)
		c.fill("example.com/v1", "widgets", "Widget", "shop", "w")
		c.end("shop")
		c.pass(2 * time.Second)
		c.mustBeGone("namespaces/shop", "widgets.example.com/shop/w")
	})
}

func TestDiscoveryThatFailsHoldsNamespacesAndIsNamed(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.start()
		c.reply(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/apis" {
				return apitest.Refuse(503, "ServiceUnavailable", "nobody is there")
			}
			return nil
		})
		c.end("shop")
		c.pass(10 * time.Minute)
		c.mustBeThere("namespaces/shop")
		c.mustBeGone("configmaps/shop/settings") // what goes without it goes
		if got := c.condition("shop", corev1.NamespaceDeletionDiscoveryFailure); got != "True DiscoveryFailed: discover the kinds that the cluster serves: the server is currently unable to handle the request" {
			t.Errorf("the condition is %q", got)
		}
		c.reply(nil)
		c.pass(discoveryRetry + time.Second)
		c.mustBeGone("namespaces/shop")
	})
}

// A 404 for /api is an empty core group to client-go.
func TestDiscoveryWithoutNamespacesIsNoAnswer(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.serve("example.com/v1", "widgets", "Widget", true, everything)
		c.start()
		c.reply(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Path == "/api":
				return apitest.Refuse(404, "NotFound", "no such page")
			case r.Method == "DELETE":
				return apitest.Refuse(403, "Forbidden", "not today")
			}
			return nil
		})
		c.end("shop")
		c.pass(5 * time.Minute)
		c.mustBeThere("namespaces/shop")
	})
}

func TestManyDeletionsShareADiscovery(t *testing.T) {
	inTown(t, func(c *town) {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"}
		for _, name := range names {
			c.found(name, "")
		}
		c.start()
		c.reply(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/apis" {
				<-time.After(20 * time.Millisecond) // it takes as long as a large one
			}
			return nil
		})
		c.asked("")
		for _, name := range names {
			c.end(name)
			<-time.After(time.Millisecond)
		}
		c.pass(time.Second)
		for _, name := range names {
			c.mustBeGone("namespaces/" + name)
		}
		if n := len(c.asked("GET /apis timeout=")); n == 0 || n > 4 {
			t.Errorf("%d discoveries, want at most 4", n)
		}
	})
}

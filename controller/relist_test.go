package controller

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/policies/apitest"
)

// The watch never says that it went: its list is answered from before, or its event was lost.
func TestAnObjectThatWentUnseenHoldsNoNamespaceForLong(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.hold("shop", "ghost")
		c.hold("shop", "held")
		c.start()
		c.end("shop")
		c.pass(10 * time.Second)
		c.mustBeThere("configmaps/shop/ghost", "configmaps/shop/held")
		c.api.Forget("configmaps/shop/ghost")
		c.api.Remove("configmaps/shop/held")
		c.pass(2 * time.Second)
		c.mustBeThere("namespaces/shop")
		c.pass(relistAfter + 2*time.Second)
		c.mustBeGone("namespaces/shop")
	})
}

func TestWhatIsWaitedForIsListedRarely(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.hold("shop", "held")
		c.start()
		c.end("shop")
		c.pass(time.Second)
		c.asked("")
		c.pass(time.Hour)
		if asked := c.asked("GET /api/v1/namespaces/shop/configmaps limit="); len(asked) == 0 || len(asked) > 7 {
			t.Errorf("%d lists in an hour, want 1 to 7: %v", len(asked), asked)
		}
		c.mustBeThere("namespaces/shop", "configmaps/shop/held")
	})
}

// A list alone proves nothing, and neither does a 404 of somebody else.
func TestWhatAListDoesNotShowIsLookedUp(t *testing.T) {
	inTown(t, func(c *town) {
		c.found("shop", "first")
		c.hold("shop", "held")
		c.start()
		c.reply(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Method != http.MethodGet || !strings.Contains(r.Path, "/namespaces/shop/configmaps"):
				return nil
			case strings.HasSuffix(r.Path, "/held"):
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
				"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}}
		})
		c.end("shop")
		c.pass(time.Hour)
		c.mustBeThere("namespaces/shop", "configmaps/shop/held")
	})
}

package namespaces_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// The watch never says that it went: its list is answered from before, or its event was lost.
func TestAnObjectThatWentUnseenHoldsNoNamespaceForLong(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Hold("shop", "ghost")
		c.Hold("shop", "held")
		c.Start()
		c.End("shop")
		c.Pass(10 * time.Second)
		c.MustBeThere("configmaps/shop/ghost", "configmaps/shop/held")
		c.API.Forget("configmaps/shop/ghost")
		c.API.Remove("configmaps/shop/held")
		c.Pass(2 * time.Second)
		c.MustBeThere("namespaces/shop")
		c.Pass(32 * time.Second)
		c.MustBeGone("namespaces/shop")
	})
}

func TestWhatIsWaitedForIsListedRarely(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Hold("shop", "held")
		c.Start()
		c.End("shop")
		c.Pass(time.Second)
		c.Asked("")
		c.Pass(time.Hour)
		if asked := c.Asked("GET /api/v1/namespaces/shop/configmaps limit="); len(asked) == 0 || len(asked) > 7 {
			t.Errorf("%d lists in an hour, want 1 to 7: %v", len(asked), asked)
		}
		c.MustBeThere("namespaces/shop", "configmaps/shop/held")
	})
}

// A list alone proves nothing, and neither does a 404 of another server.
func TestWhatAListDoesNotShowIsLookedUp(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Hold("shop", "held")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Method != http.MethodGet || !strings.Contains(r.Path, "/namespaces/shop/configmaps"):
				return nil
			case strings.HasSuffix(r.Path, "/held"):
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
				"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}}}
		})
		c.End("shop")
		c.Pass(time.Hour)
		c.MustBeThere("namespaces/shop", "configmaps/shop/held")
	})
}

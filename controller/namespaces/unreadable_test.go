package namespaces_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// An API server that is restarted behind its load balancer, or an API that is not available.
func TestAKindThatCannotBeListedHoldsTheNamespaceAndIsNamed(t *testing.T) {
	for path, kind := range map[string]string{
		"/namespaces/shop/configmaps": "configmaps", "/namespaces/shop/widgets": "widgets.example.com",
	} {
		clustertest.Run(t, func(c *clustertest.Cluster) {
			c.Serve("example.com/v1", "widgets", "Widget", true, clustertest.AllVerbs)
			c.Found("shop", "first")
			c.Start()
			c.Reply(func(r apitest.Request) *apitest.Reply {
				if strings.HasSuffix(r.Path, path) {
					return apitest.Refuse(503, "ServiceUnavailable", "nobody is there")
				}
				return nil
			})
			c.End("shop")
			c.Pass(5 * time.Minute)
			c.MustBeThere("namespaces/shop")
			got := c.Condition("shop", corev1.NamespaceDeletionContentFailure)
			if !strings.Contains(got, kind+" cannot be listed") {
				t.Errorf("the condition is %q", got)
			}
			c.Reply(nil)
			c.Pass(30 * time.Second)
			c.MustBeGone("namespaces/shop")
		})
	}
}

package namespaces_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/namespaces"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// As many namespaces as there are workers wait for a list that has no end in one of them: each says
// so, and all others go.
func TestListThatHasNoEndHoldsOnlyTheNamespacesItIsOf(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "tokens", "Token", true, metav1.Verbs{"delete", "list"})
		var held, others []string
		for i := range namespaces.DefaultNamespaceSyncs + 8 {
			held, others = append(held, fmt.Sprint("held-", i)), append(others, fmt.Sprint("other-", i))
		}
		for _, name := range append(held, others...) {
			c.Found(name, "")
		}
		c.Start()
		var page atomic.Int64
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method != http.MethodGet || !strings.Contains(r.Path, "/namespaces/held-") || !strings.HasSuffix(r.Path, "/tokens") {
				return nil
			}
			return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
				"metadata": map[string]any{"continue": fmt.Sprint(page.Add(1))}, "items": []any{}}}
		})
		for _, name := range held {
			c.End(name)
		}
		c.Pass(10 * time.Second)
		for _, name := range others {
			c.End(name)
		}
		c.Pass(10 * time.Second)
		for _, name := range others {
			c.MustBeGone("namespaces/" + name)
		}
		for _, name := range held {
			if got := c.Condition(name, drain.Draining); !strings.Contains(got, "waiting for tokens.example.com, which cannot be listed: list tokens.example.com: the API says of 10 pages in a row") {
				t.Fatalf("the condition of %s is %q", name, got)
			}
		}
		c.Reply(nil)
		c.Pass(2 * time.Minute)
		for _, name := range held {
			c.MustBeGone("namespaces/" + name)
		}
	})
}

package enforce_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// TestDeletionInANamespaceThatWasNotSeenIsJudgedByItsLabels: an object may be deleted before the
// watch has shown its namespace. Taken for one that no policy is about, it would lose the
// finalizer, and its dependents would be collected that are to be kept.
func TestDeletionInANamespaceThatWasNotSeenIsJudgedByItsLabels(t *testing.T) {
	for _, companion := range []bool{true, false} {
		clustertest.Run(t, func(c *clustertest.Cluster) {
			c.API.Put("deletionpolicies", policy("p", "propagation: {default: Orphan}, match: {resources: [{apiGroups: [''], resources: [configmaps]}], namespaceSelector: {matchLabels: {team: a}}}"))
			c.Obey()
			c.Options.Companion = companion
			c.Start()
			var readable atomic.Bool
			c.Reply(func(r apitest.Request) *apitest.Reply {
				list := r.Path == "/api/v1/namespaces" && r.Query != "limit=1" // which asks whether the history goes on
				if list || r.Path == "/api/v1/namespaces/shop" && !readable.Load() {
					return apitest.Refuse(403, "Forbidden", "not now")
				}
				return nil
			})
			c.API.Cut()
			c.API.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}")
			c.API.Put("configmaps", whole("a"))
			c.API.Put("pods", owned("Pod", "p", "a"))
			c.Pass(10 * time.Second)
			c.API.Put("configmaps", heldMap("a", ""))
			c.Pass(10 * time.Second)
			if m := fmt.Sprint(c.API.Get("configmaps/shop/a")["metadata"]); !strings.Contains(m, "weir.dev/propagation") {
				c.Errorf("companion=%t: its namespace cannot be read, and it has lost the finalizer: %s", companion, m)
			}
			changes(c)
			readable.Store(true)
			c.Pass(time.Minute)
			if sent := changes(c); !slices.Contains(sent, "DELETE a Orphan") {
				c.Errorf("companion=%t: it was not deleted with Orphan: %q", companion, sent)
			}
			c.MustBeThere("pods/shop/p")
		})
	}
}

// TestNothingIsCarriedOutByPoliciesOfBeforeARestore: a policy of the backup may want the dependents
// kept that the one of before did not.
func TestNothingIsCarriedOutByPoliciesOfBeforeARestore(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.API.Put("deletionpolicies", policy("p", "propagation: {default: Background}"))
		c.API.Put("configmaps", whole("a"))
		c.API.Put("pods", owned("Pod", "p", "a"))
		c.Obey()
		c.Options.Companion = true
		c.Start()
		var readable atomic.Bool
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/apis/weir.dev/v1beta1/deletionpolicies" && !readable.Load() {
				return apitest.Refuse(500, "InternalError", "not now")
			}
			return nil
		})
		c.Options.Policies.Rewound("restored")
		c.API.Put("deletionpolicies", policy("p", "propagation: {default: Orphan}"))
		changes(c)
		c.API.Put("configmaps", heldMap("a", ""))
		c.Pass(time.Minute)
		if sent := changes(c); len(sent) > 0 {
			c.Errorf("sent %q before the policies were listed again", sent)
		}
		readable.Store(true)
		c.Pass(time.Minute)
		if sent := changes(c); !slices.Contains(sent, "DELETE a Orphan") {
			c.Errorf("it was not deleted with Orphan: %q", sent)
		}
	})
}

package namespaces_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/clustertest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestGarbageInTheNamespaceThatWeirRunsInIsCollected although that is being deleted: nothing in it
// is the drainer's to delete, so it stays with the collector. Weir's own Deployment may have to be
// rolled out while a person finds out why the namespace does not go.
func TestGarbageInTheNamespaceThatWeirRunsInIsCollected(t *testing.T) {
	for name, policy := range map[string][]string{"in the usual order": nil, "in that of a policy": {configsFirst}} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				if policy != nil {
					c.Obey(policy...)
				}
				c.Options.Home = "weir-system"
				c.Found("weir-system", "home")
				c.Fill("v1", "configmaps", "ConfigMap", "weir-system", "owner", "other")
				c.API.Put("pods", "{apiVersion: v1, kind: Pod, metadata: {namespace: weir-system, name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: uid-owner}]}}")
				c.Start()
				c.End("weir-system")
				c.Pass(time.Minute)
				c.MustBeThere("pods/weir-system/owned")
				c.API.Remove("configmaps/weir-system/owner")
				c.Pass(time.Minute)
				c.MustBeGone("pods/weir-system/owned")
				c.MustBeThere("configmaps/weir-system/other", "namespaces/weir-system")
				if m, _ := c.API.Get("namespaces/weir-system")["metadata"].(map[string]any); m["annotations"] != nil {
					t.Errorf("no wave begins, and %s says %v", v1beta1.DrainAnnotation, m["annotations"])
				}
			})
		})
	}
}

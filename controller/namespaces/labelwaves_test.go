package namespaces_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// edgeFirst orders ConfigMaps by their labels: those of tier edge, then those of tier core, then
// what is left.
const edgeFirst = `{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: p}, spec: {namespaceSelector: {}, waves: [
  {name: edge, objectSelector: {matchLabels: {tier: edge}}, resources: [{apiGroups: [""], resources: [configmaps]}]},
  {name: core, objectSelector: {matchLabels: {tier: core}}, resources: [{apiGroups: [""], resources: [configmaps]}]},
  {name: rest, resources: [{apiGroups: [""], resources: [pods]}]}]}}`

// tiered makes a ConfigMap with a label, which is held if asked.
func tiered(c *clustertest.Cluster, name, tier string, held bool) {
	finalizers := ""
	if held {
		finalizers = ", finalizers: [example.com/hold]"
	}
	c.API.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: %s, labels: {tier: %q}%s}}", name, tier, finalizers))
}

func TestObjectsOfOneKindGoInTheOrderOfTheirLabels(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Obey(edgeFirst)
		c.Found("shop", "first")
		tiered(c, "edge", "edge", true)
		tiered(c, "core", "core", true)
		tiered(c, "none", "", false)
		c.Fill("v1", "pods", "Pod", "shop", "p")
		c.Start()
		c.End("shop")
		for _, wave := range []struct {
			held  string
			there []string
		}{
			{"configmaps/shop/edge", []string{"configmaps/shop/core", "configmaps/shop/none", "pods/shop/p"}},
			{"configmaps/shop/core", []string{"configmaps/shop/none", "pods/shop/p"}},
		} {
			c.Pass(2 * time.Minute)
			c.MustBeThere(append(wave.there, wave.held)...)
			for _, key := range wave.there {
				if terminates(c, key) {
					t.Errorf("%s was deleted while %s is held", key, wave.held)
				}
			}
			if !terminates(c, wave.held) {
				t.Errorf("%s was not deleted, though its wave is under way", wave.held)
			}
			c.API.Remove(wave.held)
		}
		c.Pass(2 * time.Minute)
		c.MustBeGone("namespaces/shop", "configmaps/shop/none", "pods/shop/p")
	})
}

// terminates tells whether an object is being deleted.
func terminates(c *clustertest.Cluster, key string) bool {
	o := c.API.Get(key)
	m, ok := o["metadata"].(map[string]any)
	return ok && m["deletionTimestamp"] != nil
}

// An object moves between waves while the namespace goes: by another label, or made when its wave
// was over.
func TestWaveOfAnObjectIsThatOfItsLabelsNow(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(c *clustertest.Cluster)
		deleted bool // the ConfigMap moves, while edge is held
		pods    bool // are kept, when edge is gone
	}{
		"it stays in its later wave":              {func(*clustertest.Cluster) {}, false, true},
		"it moves into the wave under way":        {func(c *clustertest.Cluster) { tiered(c, "moves", "edge", true) }, true, true},
		"it moves out of every wave that is told": {func(c *clustertest.Cluster) { tiered(c, "moves", "other", true) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(cluster *clustertest.Cluster) {
				cluster.Obey(edgeFirst)
				cluster.Found("shop", "first")
				tiered(cluster, "edge", "edge", true)
				tiered(cluster, "moves", "core", true)
				cluster.Fill("v1", "pods", "Pod", "shop", "p")
				cluster.Start()
				cluster.End("shop")
				cluster.Pass(10 * time.Second)
				c.change(cluster)
				cluster.Pass(2 * time.Minute)
				if got := terminates(cluster, "configmaps/shop/moves"); got != c.deleted {
					t.Errorf("deleted=%t while the first wave is under way, want %t", got, c.deleted)
				}
				cluster.API.Remove("configmaps/shop/edge")
				cluster.Pass(2 * time.Minute)
				if !terminates(cluster, "configmaps/shop/moves") {
					t.Error("it was not deleted when its wave came")
				}
				if kept := cluster.API.Get("pods/shop/p") != nil; kept != c.pods {
					t.Errorf("the pod is kept=%t, want %t", kept, c.pods)
				}
			})
		})
	}
}

// Labels are known from a live list only: where it is refused nothing of the kind may be deleted,
// because its wave may be a later one.
func TestNothingIsDeletedWhoseLabelsCannotBeRead(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Obey(edgeFirst)
		c.Found("shop", "first")
		tiered(c, "edge", "edge", false)
		tiered(c, "core", "core", false)
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/shop/configmaps") {
				return apitest.Refuse(403, "Forbidden", "not for you")
			}
			return nil
		})
		c.End("shop")
		c.Pass(5 * time.Minute)
		c.MustBeThere("configmaps/shop/edge", "configmaps/shop/core", "namespaces/shop")
		c.Reply(nil)
		c.Pass(2 * time.Minute)
		c.MustBeGone("configmaps/shop/edge", "configmaps/shop/core", "namespaces/shop")
	})
}

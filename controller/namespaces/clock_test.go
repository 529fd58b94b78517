package namespaces_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/testkit/clustertest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// skews are differences between the API servers' clock and ours.
var skews = []time.Duration{-10 * time.Minute, 0, 10 * time.Minute}

const configsFirst = `{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: p}, spec: {namespaceSelector: {}, waves: [
  {name: configs, timeoutSeconds: 60, onTimeout: Proceed, resources: [{apiGroups: [""], resources: [configmaps]}]},
  {name: rest, resources: [{apiGroups: [""], resources: [pods]}]}]}}`

// inTowns runs a test once for each of them.
func inTowns(t *testing.T, test func(c *clustertest.Cluster)) {
	for _, ahead := range skews {
		t.Run(fmt.Sprintf("ahead=%s", ahead), func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) { c.Ahead = ahead; test(c) })
		})
	}
}

// heldFirst makes a namespace shop, whose first wave lasts a minute, because a ConfigMap of it is
// held, and whose second is a pod p.
func heldFirst(c *clustertest.Cluster) {
	c.Obey(configsFirst)
	c.Found("shop", "first")
	c.Hold("shop", "held")
	c.Fill("v1", "pods", "Pod", "shop", "p")
}

func TestAWaveLastsAsLongWhateverTheClocksSay(t *testing.T) {
	inTowns(t, func(c *clustertest.Cluster) {
		heldFirst(c)
		c.Start()
		c.End("shop")
		c.Pass(50 * time.Second)
		c.MustBeThere("pods/shop/p")
		c.Pass(15 * time.Second)
		c.MustBeGone("pods/shop/p")
	})
}

func TestAWaveLastsAsLongForTheNextLeader(t *testing.T) {
	inTowns(t, func(c *clustertest.Cluster) {
		heldFirst(c)
		stop := c.Start()
		c.End("shop")
		c.Pass(30 * time.Second)
		stop()
		c.Start()
		c.Pass(15 * time.Second)
		c.MustBeThere("pods/shop/p")
		c.Pass(15 * time.Second)
		c.MustBeGone("pods/shop/p")
	})
}

func TestSeveralServersAgreeAsLongWhateverTheClocksSay(t *testing.T) {
	inTowns(t, func(c *clustertest.Cluster) {
		c.Servers = 2
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		c.End("shop")
		c.Pass(4 * time.Second)
		c.MustBeThere("configmaps/shop/settings")
		c.Pass(2 * time.Second)
		c.MustBeGone("configmaps/shop/settings", "namespaces/shop")
	})
}

// A patch that changes nothing wakes no one.
func TestTheNamespaceControllerIsWokenWhateverTheClocksSay(t *testing.T) {
	inTowns(t, func(c *clustertest.Cluster) {
		c.Options.Companion = true
		c.Obey(configsFirst)
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		c.End("shop")
		seen := map[string]bool{}
		for range 5 {
			c.Pass(8 * time.Second)
			var ns corev1.Namespace
			if !c.Namespace("shop", &ns) {
				c.Fatal("the namespace is gone")
			}
			seen[ns.Annotations[v1beta1.DrainSinceAnnotation]] = true
		}
		if len(seen) < 5 {
			c.Errorf("it says since when the wave is under way: %v", seen)
		}
	})
}

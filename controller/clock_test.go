package controller

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/policies/v1alpha1"
)

// skews are differences between the API servers' clock and ours.
var skews = []time.Duration{-10 * time.Minute, 0, 10 * time.Minute}

const configsFirst = `{apiVersion: weir.dev/v1alpha1, kind: DrainPolicy, metadata: {name: p}, spec: {namespaceSelector: {}, waves: [
  {name: configs, timeout: 1m, onTimeout: Proceed, resources: [{apiGroups: [""], resources: [configmaps]}]},
  {name: rest, resources: [{apiGroups: [""], resources: [pods]}]}]}}`

// inTowns runs a test once for each of them.
func inTowns(t *testing.T, test func(c *town)) {
	for _, ahead := range skews {
		t.Run(fmt.Sprintf("ahead=%s", ahead), func(t *testing.T) {
			inTown(t, func(c *town) { c.ahead = ahead; test(c) })
		})
	}
}

// hold makes a ConfigMap that somebody else holds.
func (c *town) hold(namespace, name string) {
	c.api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s, finalizers: [example.com/hold]}}", namespace, name))
}

// heldFirst makes a namespace shop, whose first wave lasts a minute, because a ConfigMap of it is held, and whose second is a pod p.
func (c *town) heldFirst() {
	c.obey(configsFirst)
	c.found("shop", "first")
	c.hold("shop", "held")
	c.fill("v1", "pods", "Pod", "shop", "p")
}

func TestAWaveLastsAsLongWhateverTheClocksSay(t *testing.T) {
	inTowns(t, func(c *town) {
		c.heldFirst()
		c.start()
		c.end("shop")
		c.pass(50 * time.Second)
		c.mustBeThere("pods/shop/p")
		c.pass(15 * time.Second)
		c.mustBeGone("pods/shop/p")
	})
}

func TestAWaveLastsAsLongForTheNextLeader(t *testing.T) {
	inTowns(t, func(c *town) {
		c.heldFirst()
		stop := c.start()
		c.end("shop")
		c.pass(30 * time.Second)
		stop()
		c.start()
		c.pass(15 * time.Second)
		c.mustBeThere("pods/shop/p")
		c.pass(15 * time.Second)
		c.mustBeGone("pods/shop/p")
	})
}

func TestSeveralServersAgreeAsLongWhateverTheClocksSay(t *testing.T) {
	inTowns(t, func(c *town) {
		c.servers = 2
		c.found("shop", "first")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.start()
		c.end("shop")
		c.pass(4 * time.Second)
		c.mustBeThere("configmaps/shop/settings")
		c.pass(2 * time.Second)
		c.mustBeGone("configmaps/shop/settings", "namespaces/shop")
	})
}

// A patch that changes nothing wakes nobody.
func TestTheNamespaceControllerIsWokenWhateverTheClocksSay(t *testing.T) {
	inTowns(t, func(c *town) {
		c.options.Companion = true
		c.obey(configsFirst)
		c.found("shop", "first")
		c.fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.start()
		c.end("shop")
		seen := map[string]bool{}
		for range 5 {
			c.pass(nudgeEvery + time.Second)
			var ns corev1.Namespace
			if !c.namespace("shop", &ns) {
				c.Fatal("the namespace is gone")
			}
			seen[ns.Annotations[v1alpha1.DrainSinceAnnotation]] = true
		}
		if len(seen) < 5 {
			c.Errorf("it says since when the wave is under way: %v", seen)
		}
	})
}

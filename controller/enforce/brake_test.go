package enforce_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

const heldMaps = "heldcollections.weir.dev/requested.configmaps"

// heldStatus reads a field of the HeldCollection of ConfigMaps that were deleted by request, or its
// condition's message; "" if there is none.
func heldStatus(c *clustertest.Cluster, field string) string {
	status, _ := c.API.Get(heldMaps)["status"].(map[string]any)
	if conditions, _ := status["conditions"].([]any); field == "message" && len(conditions) == 1 {
		status = conditions[0].(map[string]any)
	}
	if status[field] == nil {
		return ""
	}
	return fmt.Sprint(status[field])
}

// braked runs a test in both modes: ConfigMap a was deleted, with a propagation, and two pods
// depend on it, where a policy lets one go.
func braked(t *testing.T, finalizers string, test func(c *clustertest.Cluster)) {
	for _, companion := range []bool{false, true} {
		if companion && strings.Contains(finalizers, "foreground") {
			continue // refused by the webhook
		}
		t.Run(fmt.Sprintf("companion=%t", companion), func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.API.Put("deletionpolicies", policy("p", "brake: {maxObjects: 1}"))
				held := strings.Replace(heldMap("a", ""), "[weir.dev/propagation]", "["+finalizers+"]", 1)
				c.API.Put("configmaps", strings.Replace(held, ", deletionTimestamp: '2000-01-01T00:00:00Z'", "", 1))
				c.API.Put("pods", owned("Pod", "p", "a"))
				c.API.Put("pods", owned("Pod", "q", "a"))
				c.Obey()
				c.Options.Companion = companion
				c.Start()
				changes(c)
				c.API.Put("configmaps", held)
				c.Pass(time.Minute)
				c.MustBeThere("configmaps/shop/a", "pods/shop/p", "pods/shop/q")
				if message := heldStatus(c, "message"); !strings.Contains(message, `1 requested deletion of configmaps, which would delete 3 objects in all (DeletionPolicy "p" allows 1 for each)`) ||
					heldStatus(c, "cause") != "map[resource:configmaps type:Requested]" || heldStatus(c, "held") != "1" || heldStatus(c, "objects") != "3" {
					c.Errorf("%v", c.API.Get(heldMaps)["status"])
				}
				if told := c.Reported("a DeletionHeld"); len(told) != 1 || !strings.Contains(told[0], `2 objects would also be deleted, and DeletionPolicy "p" allows 1`) {
					c.Errorf("Events: %q", c.Reported(""))
				}
				wantChanges(c, nil)
				test(c)
			})
		})
	}
}

// gone tells that nothing is held any more, and that the owner went.
func ended(c *clustertest.Cluster) {
	c.Helper()
	c.Pass(time.Minute)
	if c.API.Get("configmaps/shop/a") != nil {
		c.Error("the object is still there")
	}
	if c.API.Get(heldMaps) != nil {
		c.Error("something is still held")
	}
}

func TestBrakeLetsGoWhatAPersonDecides(t *testing.T) {
	for _, finalizers := range []string{"weir.dev/propagation", "weir.dev/propagation, foregroundDeletion"} {
		braked(t, finalizers, func(c *clustertest.Cluster) {
			decide := func(digest string) {
				h := c.API.Get(heldMaps)
				h["spec"] = map[string]any{"decision": "Proceed", "digest": digest}
				c.Put("heldcollections", h)
				c.Pass(time.Minute)
			}
			h := c.API.Get(heldMaps)
			h["spec"] = map[string]any{"decision": "Discard", "digest": heldStatus(c, "digest")}
			c.Put("heldcollections", h)
			c.Pass(time.Minute)
			c.MustBeThere("configmaps/shop/a", "pods/shop/p", "pods/shop/q")
			if !strings.Contains(heldStatus(c, "message"), "delete it again with --cascade=orphan") {
				c.Errorf("%v", c.API.Get(heldMaps)["status"])
			}
			decide("0123456789abcdef")
			c.MustBeThere("configmaps/shop/a", "pods/shop/p", "pods/shop/q")
			decide(heldStatus(c, "digest"))
			ended(c)
			if !c.Options.Companion {
				c.MustBeGone("pods/shop/p", "pods/shop/q")
			}
		})
	}
}

// TestADecisionIsAboutAsMuchAsWasRead: more dependents come after a person has read what is held.
// As many as the limit are deleted with it; for more the digest is another, and the decision about
// the old one counts for nothing.
func TestADecisionIsAboutAsMuchAsWasRead(t *testing.T) {
	for more, digests := range map[int]int{1: 1, 5: 2} {
		t.Run(fmt.Sprintf("%d more", more), func(t *testing.T) {
			braked(t, "weir.dev/propagation", func(c *clustertest.Cluster) {
				decide := func(digest string) {
					h := c.API.Get(heldMaps)
					h["spec"] = map[string]any{"decision": "Proceed", "digest": digest}
					c.Put("heldcollections", h)
					c.Pass(time.Minute)
				}
				read := heldStatus(c, "digest")
				for i := range more {
					c.API.Put("pods", owned("Pod", fmt.Sprint("more", i), "a"))
				}
				c.Pass(time.Minute)
				decide(read)
				if digests == 2 {
					c.MustBeThere("configmaps/shop/a", "pods/shop/p", "pods/shop/more0")
					if now := heldStatus(c, "digest"); now == read || !strings.Contains(heldStatus(c, "message"), "what is held has another") {
						c.Errorf("digest %s, as before: %s", now, heldStatus(c, "message"))
					}
					decide(heldStatus(c, "digest"))
				}
				ended(c)
			})
		})
	}
}

// TestBrakeEndsWhenLessWouldBeDeleted: a dependent is released by its user, and by deleting the
// owner once more with Orphan.
func TestBrakeEndsWhenLessWouldBeDeleted(t *testing.T) {
	for name, repair := range map[string]func(c *clustertest.Cluster){
		"released": func(c *clustertest.Cluster) {
			c.API.Put("pods", "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop}}")
		},
		"orphaned": func(c *clustertest.Cluster) {
			c.API.Put("configmaps", strings.Replace(heldMap("a", ""), "propagation]", "propagation, orphan]", 1))
		},
		"the policy goes":      func(c *clustertest.Cluster) { c.API.Remove("deletionpolicies.weir.dev/p") },
		"the policy lets more": func(c *clustertest.Cluster) { c.API.Put("deletionpolicies", policy("p", "brake: {maxObjects: 2}")) },
	} {
		t.Run(name, func(t *testing.T) {
			braked(t, "weir.dev/propagation", func(c *clustertest.Cluster) {
				repair(c)
				if name == "orphaned" && c.Options.Companion {
					return // the finalizer is the built-in collector's to take off
				}
				ended(c)
				if name == "released" || name == "orphaned" {
					c.MustBeThere("pods/shop/p")
				}
			})
		})
	}
}

// TestBrakeHoldsAfterARestart: a person has to look again.
func TestBrakeHoldsAfterARestart(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.API.Put("deletionpolicies", policy("p", "brake: {maxObjects: 0}"))
		c.API.Put("configmaps", heldMap("a", ""))
		c.API.Put("pods", owned("Pod", "p", "a"))
		c.Obey()
		for range 2 {
			stop := c.Start()
			c.Pass(time.Minute)
			c.MustBeThere("configmaps/shop/a", "pods/shop/p")
			if heldStatus(c, "held") != "1" {
				c.Errorf("%v", c.API.Get(heldMaps)["status"])
			}
			stop()
		}
		c.API.Remove("pods/shop/p") // while no person looks
		c.Start()
		ended(c)
	})
}

package brake_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// TestNothingButADecisionLetsAnObjectGo: whatever else a client does to a HeldCollection, nothing
// goes, and within a minute it says again what is held, by the digest that people may have read.
func TestNothingButADecisionLetsAnObjectGo(t *testing.T) {
	replace := func(c *clustertest.Cluster, uid string, status map[string]any) {
		h := c.API.Get(heldMaps)
		c.API.Remove(heldMaps)
		h["metadata"] = map[string]any{"name": "configmaps", "uid": uid}
		h["status"] = status
		c.Put("heldcollections", h)
	}
	for name, does := range map[string]func(c *clustertest.Cluster, digest string){
		"it is deleted": func(c *clustertest.Cluster, _ string) { c.API.Remove(heldMaps) },
		"it is deleted, and made again from a file, which has no status": func(c *clustertest.Cluster, _ string) {
			replace(c, "again", nil)
		},
		"it is replaced by one of another cluster": func(c *clustertest.Cluster, _ string) {
			replace(c, "again", map[string]any{"since": "2001-01-01T00:00:00Z", "digest": "0123456789abcdef", "held": 1, "conclusions": []any{"ReferenceEdited"}})
		},
		"its status is emptied": func(c *clustertest.Cluster, _ string) {
			h := c.API.Get(heldMaps)
			delete(h, "status")
			c.Put("heldcollections", h)
		},
		"its digest is made that of a decision": func(c *clustertest.Cluster, _ string) {
			h := c.API.Get(heldMaps)
			h["spec"] = map[string]any{"decision": "Proceed", "digest": "feed"}
			h["status"].(map[string]any)["digest"] = "feed"
			c.Put("heldcollections", h)
		},
		"a decision is about nothing":      func(c *clustertest.Cluster, _ string) { proceed(c, "") },
		"a decision is about a part of it": func(c *clustertest.Cluster, digest string) { proceed(c, digest[:8]) },
		"a decision is about more than it": func(c *clustertest.Cluster, digest string) { proceed(c, digest+"0") },
		"it has a digest, and no decision": func(c *clustertest.Cluster, digest string) {
			h := c.API.Get(heldMaps)
			h["spec"] = map[string]any{"digest": digest}
			c.Put("heldcollections", h)
		},
	} {
		t.Run(name, func(t *testing.T) {
			held(t, 6, func(c *clustertest.Cluster, _ func()) {
				digest, since := saysHeld(c, "digest"), saysHeld(c, "since")
				does(c, digest)
				c.Pass(time.Minute)
				if left := leftOf(c, 6); left != 6 {
					c.Errorf("%d of 6 are left", left)
				}
				if saysHeld(c, "held") != "6" || saysHeld(c, "digest") != digest || saysHeld(c, "since") != since || saysHeld(c, "conclusions") != "[OwnerNotFound]" {
					c.Errorf("%v", c.API.Get(heldMaps)["status"])
				}
				proceed(c, digest)
				c.Pass(time.Minute)
				if left := leftOf(c, 6); left != 0 || c.API.Get(heldMaps) != nil {
					c.Errorf("%d of 6 are left after a decision: %v", left, c.API.Get(heldMaps))
				}
			})
		})
	}
}

// TestNothingIsWrittenWhileNothingChanges: what is held may be so for weeks.
func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	held(t, 6, func(c *clustertest.Cluster, _ func()) {
		c.Sent()
		c.Pass(15 * time.Minute)
		for _, r := range c.Sent() {
			if strings.Contains(r.Path, "heldcollections") && r.Method != http.MethodGet {
				c.Errorf("%s %s", r.Method, r.Path)
			}
		}
		if told := c.Reported("CollectionHeld"); len(told) != 1 {
			c.Errorf("Events: %q", told)
		}
	})
}

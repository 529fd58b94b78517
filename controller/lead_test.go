package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// ownedPod makes a pod that a ConfigMap owns.
func ownedPod(c *clustertest.Cluster, name, owner string) {
	c.API.Put("pods", fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: uid-%s}]}}", name, owner, owner))
}

// cascade makes a ConfigMap that owns so many pods, and deletes it.
func cascade(c *clustertest.Cluster, n int) {
	c.Fill("v1", "configmaps", "ConfigMap", "shop", "owner")
	for i := range n {
		ownedPod(c, fmt.Sprint("p", i), "owner")
	}
	c.Pass(time.Second)
	c.API.Remove("configmaps/shop/owner")
}

func pods(c *clustertest.Cluster, n int) (left int) {
	for i := range n {
		if c.API.Get(fmt.Sprint("pods/shop/p", i)) != nil {
			left++
		}
	}
	return left
}

// changes are the requests since the last call that change anything but Events.
func changes(c *clustertest.Cluster) (all []string) {
	for _, r := range c.Sent() {
		if r.Method != http.MethodGet && !strings.HasSuffix(r.Path, "/events") {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

// TestWhoFollowsChangesNothing: a replica that does not lead sees the garbage, and leaves it to who
// does. When it leads it goes on with what was seen before.
func TestWhoFollowsChangesNothing(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		lead := c.Follow()
		cascade(c, 5)
		c.Pass(10 * time.Minute)
		if sent := changes(c); pods(c, 5) != 5 || len(sent) > 0 {
			c.Errorf("%d of 5 are left: %q", pods(c, 5), sent)
		}
		lead()
		c.Pass(10 * time.Second)
		if left := pods(c, 5); left != 0 {
			c.Errorf("%d are left", left)
		}
	})
}

// TestACascadeGoesOnWithTheNextLeader, whatever became of the last requests of the one before: they
// were refused, they hung when it ended, or were carried out without that it heard of it. Each
// object is deleted once.
func TestACascadeGoesOnWithTheNextLeader(t *testing.T) {
	for name, last := range map[string]func(c *clustertest.Cluster, key string) *apitest.Reply{
		"refused": func(*clustertest.Cluster, string) *apitest.Reply {
			return apitest.Refuse(500, "InternalError", "not now")
		},
		"too many": func(*clustertest.Cluster, string) *apitest.Reply {
			return apitest.Refuse(429, "TooManyRequests", "not now")
		},
		"carried out, and not answered": func(c *clustertest.Cluster, key string) *apitest.Reply {
			c.API.Remove(key)
			return apitest.Refuse(504, "Timeout", "the answer is lost")
		},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				next := c.Follow()
				stop := c.Start()
				var mu sync.Mutex // workers ask at the same time
				deleted := map[string]int{}
				first := true
				c.Reply(func(r apitest.Request) *apitest.Reply {
					key, ok := strings.CutPrefix(r.Path, "/api/v1/namespaces/shop/pods/")
					if r.Method != http.MethodDelete || !ok {
						return nil
					}
					mu.Lock()
					defer mu.Unlock()
					key = "pods/shop/" + key
					if c.API.Get(key) != nil && (!first || len(deleted) < 10) {
						deleted[key]++
						return nil
					}
					if first {
						return last(c, key)
					}
					return nil
				})
				cascade(c, 30)
				c.Pass(time.Second)
				if len(deleted) != 10 {
					c.Fatalf("%d were deleted by the first leader, want 10", len(deleted))
				}
				stop()
				first = false
				next()
				c.Pass(time.Minute)
				if left := pods(c, 30); left != 0 {
					c.Errorf("%d are left", left)
				}
				for key, n := range deleted {
					if n != 1 {
						c.Errorf("%s was deleted %d times", key, n)
					}
				}
			})
		})
	}
}

// TestInShadowModeALeaderOnlyReads, and needs none of what it is told of policies, namespaces and
// the canary.
func TestInShadowModeALeaderOnlyReads(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Obey()
		c.Options.Shadow, c.Options.Canary, c.Options.Brake = true, "weir-system", brake.Limits{Most: 1}
		c.Found("shop", "shop-1")
		c.Start()
		cascade(c, 5)
		c.End("shop")
		c.Pass(time.Hour)
		if sent := changes(c); pods(c, 5) != 5 || len(sent) > 0 || len(c.Reported("")) > 0 {
			c.Errorf("%d of 5 are left, it sent %q and reported %q", pods(c, 5), sent, c.Reported(""))
		}
	})
}

// TestInCompanionModeGarbageIsTheOtherCollectors: nothing of it is deleted, and none is held.
func TestInCompanionModeGarbageIsTheOtherCollectors(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Options.Companion, c.Options.Brake = true, brake.Limits{Most: 1, Objects: 1, Share: 1}
		c.Start()
		cascade(c, 5)
		for i := range 3 {
			ownedPod(c, fmt.Sprint("p", 5+i), fmt.Sprint("never", i))
		}
		c.Pass(10 * time.Minute)
		if left, held := pods(c, 8), c.API.Get("heldcollections.weir.dev/configmaps") != nil; left != 8 || held {
			c.Errorf("%d of 8 are left, something is held: %t", left, held)
		}
	})
}

// TestInReplaceModeNothingIsCollectedBesideAnother, which is seen by an object that no other
// program deletes. When it has ended, the garbage that it left goes.
func TestInReplaceModeNothingIsCollectedBesideAnother(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Options.Canary = "weir-system"
		c.Reply(func(apitest.Request) *apitest.Reply { // the other is at once where a canary is
			c.API.Remove("configmaps/weir-system/" + v1beta1.CollectorCanary)
			return nil
		})
		c.Start()
		cascade(c, 5)
		c.Pass(time.Hour)
		if left := pods(c, 5); left != 5 {
			c.Errorf("%d of 5 are left beside another collector", left)
		}
		c.Reply(nil)
		c.Pass(time.Hour)
		if left := pods(c, 5); left != 0 {
			c.Errorf("%d are left, although no other collector works", left)
		}
		c.MustBeThere("configmaps/weir-system/" + v1beta1.CollectorCanary) // it stays, to tell of one that begins
	})
}

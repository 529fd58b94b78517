package brake_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

const deletedOwners = "configmaps/weir-system/weir-deleted-owners"

// boss is an owner of n pods.
func boss(c *clustertest.Cluster, n int) {
	c.API.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: boss, namespace: shop, uid: 00000000-0000-4000-8000-00000000b055}}")
	for i := range n {
		c.API.Put("pods", fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: shop, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: 00000000-0000-4000-8000-00000000b055}]}}", i))
	}
}

// writeRecord is somebody who may write in Weir's namespace.
func writeRecord(c *clustertest.Cluster, owners string) {
	c.Put("configmaps", corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-deleted-owners"}, Data: map[string]string{"owners": owners},
	})
}

// killed runs a test in which a client deletes an owner of n pods, and Weir is killed when it has
// deleted some.
func killed(t *testing.T, n, done int, test func(c *clustertest.Cluster)) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Options.Brake = brake.Limits{Most: 20, Objects: 20, Share: 1}
		c.Options.Canary, c.Options.CanaryStands = "weir-system", 100*time.Millisecond
		boss(c, n)
		stop := c.Start()
		stops(c, done)
		c.API.Remove("configmaps/shop/boss")
		c.Pass(2 * time.Second)
		stop()
		if left := leftOf(c, n); left != n-done {
			c.Fatalf("%d of %d are left when it is killed, want %d", left, n, n-done)
		}
		c.Reply(nil)
		test(c)
	})
}

// stops has the API server carry out so many deletes of pods, and no more.
func stops(c *clustertest.Cluster, after int) {
	var deletes atomic.Int32 // requests come side by side
	c.Reply(func(r apitest.Request) *apitest.Reply {
		if r.Method == http.MethodDelete && strings.Contains(r.Path, "/pods/") && deletes.Add(1) > int32(after) {
			return apitest.Refuse(500, "InternalError", "not now")
		}
		return nil
	})
}

// TestWhatWasAskedForGoesOnAfterAKill: the next process has not seen the owner's delete, and a
// person is not asked; nor after a second kill.
func TestWhatWasAskedForGoesOnAfterAKill(t *testing.T) {
	killed(t, 60, 5, func(c *clustertest.Cluster) {
		stops(c, 10)
		stop := c.Start()
		c.Pass(2 * time.Second)
		stop()
		if left := leftOf(c, 60); left != 45 {
			c.Fatalf("%d of 60 are left when it is killed again, want 45", left)
		}
		c.Reply(nil)
		c.Start()
		c.Pass(time.Minute)
		if left := leftOf(c, 60); left != 0 || c.API.Get(heldMaps) != nil {
			c.Errorf("%d of 60 are left; %v", left, c.API.Get(heldMaps))
		}
		if data := c.API.Get(deletedOwners)["data"].(map[string]any); data["owners"] != "" {
			c.Errorf("it is recorded for ever: %v", data)
		}
	})
}

// TestWhatNoRecordCoversIsHeld: it is missing, damaged, of another owner or of another kind, or
// more refers to the owner than it says.
func TestWhatNoRecordCoversIsHeld(t *testing.T) {
	const uid = "00000000-0000-4000-8000-00000000b055"
	for name, record := range map[string]string{
		"none":    "none",
		"damaged": "configmaps " + uid + "\n" + uid + " 60\nconfigmaps " + uid + " sixty\n",
		"another": "configmaps 00000000-0000-4000-8000-00000000b056 60\n",
		"kind":    "pods " + uid + " 60\nsecrets " + uid + " 60\n",
		"more":    "configmaps " + uid + " 54\n",
	} {
		t.Run(name, func(t *testing.T) {
			killed(t, 60, 5, func(c *clustertest.Cluster) {
				if c.API.Get(deletedOwners) == nil {
					c.Fatal("nothing was recorded")
				}
				if c.API.Remove(deletedOwners); record != "none" {
					writeRecord(c, record)
				}
				c.Start()
				c.Pass(time.Minute)
				if left := leftOf(c, 60); left != 55 || saysHeld(c, "held") != "55" {
					c.Errorf("%d of 60 are left: %v", left, c.API.Get(heldMaps))
				}
			})
		})
	}
}

// TestARecordOfAnOwnerThatIsThereDoesNothing: whoever writes it.
func TestARecordOfAnOwnerThatIsThereDoesNothing(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Options.Brake = brake.Limits{Most: 20, Objects: 20, Share: 1}
		c.Options.Canary, c.Options.CanaryStands = "weir-system", 100*time.Millisecond
		boss(c, 60)
		writeRecord(c, "configmaps 00000000-0000-4000-8000-00000000b055 60")
		c.Start()
		c.Pass(time.Minute)
		if left := leftOf(c, 60); left != 60 {
			c.Errorf("%d of 60 are left", left)
		}
	})
}

// TestLittleIsNotRecorded: what is far from any limit is not held, so there is nothing to write
// down. And what is much costs a write or two.
func TestLittleIsNotRecorded(t *testing.T) {
	for n, want := range map[int]int{2: 0, 60: 3} { // a patch that finds none, then a create; and a patch when it is over
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			killed(t, n, 1, func(c *clustertest.Cluster) {
				c.Start()
				c.Pass(time.Minute)
				var writes []string
				for _, r := range c.Sent() {
					if r.Method != http.MethodGet && strings.Contains(r.Path+r.Body, "weir-deleted-owners") {
						writes = append(writes, r.Method)
					}
				}
				if leftOf(c, n) != 0 || len(writes) != want {
					c.Errorf("%d of %d are left; the record is written by %v, want %d", leftOf(c, n), n, writes, want)
				}
			})
		})
	}
}

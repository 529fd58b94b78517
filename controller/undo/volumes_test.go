package undo_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// retaining is a policy that records ConfigMaps, and retains the volumes of the claims that go with
// them.
func retaining(more string) string {
	return strings.Replace(archiving(more), "retentionSeconds: 900", "retentionSeconds: 900, volumes: Retain", 1)
}

// claimed makes ConfigMap a own a claim, and a volume that refers to a claim by its uid.
func claimed(c *clustertest.Cluster, reclaim, uid string) {
	c.Serve("v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, clustertest.AllVerbs)
	c.Serve("v1", "persistentvolumes", "PersistentVolume", false, clustertest.AllVerbs)
	c.API.Put("persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, "+
		"ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: uid-a}]}, spec: {volumeName: v}}")
	c.API.Put("persistentvolumes", fmt.Sprintf("{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: "+
		"{persistentVolumeReclaimPolicy: %s, claimRef: {namespace: shop, name: data, uid: %s}}}", reclaim, uid))
}

// volume returns the reclaim policy of the volume, and its annotation; TREE is the first tree's
// name.
func volume(c *clustertest.Cluster) string {
	c.Helper()
	v := c.API.Get("persistentvolumes/v")
	policy := v["spec"].(map[string]any)["persistentVolumeReclaimPolicy"]
	annotations, _ := v["metadata"].(map[string]any)["annotations"].(map[string]any)
	said, _ := annotations["weir.dev/retained"].(string)
	trees, err := store(c).List(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	for _, tree := range trees {
		said = strings.ReplaceAll(said, tree.Name, "TREE")
	}
	return fmt.Sprint(policy, " ", said)
}

func TestVolumesStayAsLongAsTheirTree(t *testing.T) {
	const stays = "Retain Delete/TREE/uid-data"
	for name, of := range map[string]struct{ policy, reclaim, uid, kept, after string }{
		"its claim goes":                {retaining(""), "Delete", "uid-data", stays, "Delete "},
		"it is left":                    {archiving(""), "Delete", "uid-data", "Delete ", "Delete "},
		"it stays anyway":               {retaining(""), "Retain", "uid-data", "Retain ", "Retain "},
		"it is another claim's":         {retaining(""), "Delete", "another", "Delete ", "Delete "},
		"another claim has it by then":  {retaining(""), "Delete", "uid-data", stays, "Retain Delete/"},
		"a leader comes after the tree": {retaining(""), "Delete", "uid-data", stays, "Delete "},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.API.Put("deletionpolicies", of.policy)
				c.API.Put("configmaps", configMap("a", ""))
				claimed(c, of.reclaim, of.uid)
				c.Obey()
				c.Options.Canary, c.Options.CanaryStands = "weir-system", 100*time.Millisecond
				stop := c.Start()
				c.API.Put("configmaps", configMap("a", terminating))
				c.Pass(time.Minute)
				c.MustBeGone("configmaps/shop/a", "persistentvolumeclaims/shop/data")
				if got := volume(c); got != of.kept {
					t.Errorf("the volume is %q, want %q", got, of.kept)
				}
				switch name {
				case "another claim has it by then":
					v := c.API.Get("persistentvolumes/v")
					v["spec"].(map[string]any)["claimRef"].(map[string]any)["uid"] = "another"
					c.Put("persistentvolumes", v)
				case "a leader comes after the tree":
					stop()
					trees, err := store(c).List(c.Context())
					if err != nil || len(trees) != 1 {
						t.Fatal(trees, err)
					}
					c.API.Remove("deletedtrees.weir.dev/" + trees[0].Name)
					c.Start()
				}
				c.Pass(20 * time.Minute)
				if got := volume(c); !strings.HasPrefix(got, of.after) || got == stays {
					t.Errorf("after its time the volume is %q, want %q", got, of.after)
				}
			})
		})
	}
}

// TestAVolumeThatCannotBeRetained holds its claim with Fail, and is named with Ignore.
func TestAVolumeThatCannotBeRetained(t *testing.T) {
	for _, fail := range []bool{true, false} {
		t.Run(fmt.Sprintf("fail=%t", fail), func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.API.Put("deletionpolicies", retaining(map[bool]string{true: ", failurePolicy: Fail"}[fail]))
				c.API.Put("configmaps", configMap("a", ""))
				claimed(c, "Delete", "uid-data")
				c.Obey()
				c.Options.Canary, c.Options.CanaryStands = "weir-system", 100*time.Millisecond
				var down atomic.Bool
				down.Store(true)
				c.Reply(func(r apitest.Request) *apitest.Reply {
					if down.Load() && r.Method == http.MethodPatch && strings.Contains(r.Path, "/persistentvolumes/") {
						return apitest.Refuse(403, "Forbidden", "not now")
					}
					return nil
				})
				c.Start()
				c.API.Put("configmaps", configMap("a", terminating))
				c.Pass(time.Minute)
				if there := c.API.Get("persistentvolumeclaims/shop/data") != nil; there != fail {
					t.Errorf("the claim is there: %t", there)
				}
				if !fail {
					wantKept(c, "a: ConfigMap/a PersistentVolumeClaim/data missed persistentvolumes v")
					return
				}
				down.Store(false)
				c.Pass(10 * time.Minute)
				c.MustBeGone("configmaps/shop/a", "persistentvolumeclaims/shop/data")
				if got := volume(c); got != "Retain Delete/TREE/uid-data" {
					t.Errorf("the volume is %q", got)
				}
			})
		})
	}
}

package collect

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestOrphaningOwnerStaysUntilWatchesHaveShownEverything: one that is deleted foreground does not.
func TestOrphaningOwnerStaysUntilWatchesHaveShownEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, nil)
		var shown atomic.Bool
		e.work.Shown = func(graph.Ref) bool { return shown.Load() }
		e.run(1, func(context.Context) {
			for name, finalizer := range map[string]string{"orphan": "orphan", "fg": "foregroundDeletion"} {
				e.api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: shop, "+
					"finalizers: ["+finalizer+"], deletionTimestamp: '2026-01-01T00:00:00Z'}}")
			}
			<-time.After(10 * time.Second)
			if left := e.there(fixture.ConfigMaps, "orphan", "fg"); len(left) != 1 || left[0] != "orphan" {
				t.Errorf("%v are there, want orphan", left)
			}
			shown.Store(true)
			<-time.After(2 * untilShown)
			if left := e.there(fixture.ConfigMaps, "orphan"); len(left) > 0 {
				t.Error("the owner is still there")
			}
		})
	})
}

package collect

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestWhatAnOwnerAwaitsIsDeletedOnTheWordOfALiveRead: a watch is late, or broken, when the owner is
// told to orphan; and it still shows that the owner waits for its dependents.
func TestWhatAnOwnerAwaitsIsDeletedOnTheWordOfALiveRead(t *testing.T) {
	owner := func(uid string, deleting bool, finalizers ...any) *apitest.Reply {
		m := map[string]any{"name": "boss", "namespace": "shop", "uid": uid, "resourceVersion": "999",
			"finalizers": finalizers}
		if deleting {
			m["deletionTimestamp"] = "2000-01-01T00:00:00Z"
		}
		return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadata",
			"apiVersion": "meta.k8s.io/v1", "metadata": m}}
	}
	const n = 50
	for name, c := range map[string]struct {
		live    *apitest.Reply // of the owner; nil: as the watch shows it
		watched string         // its finalizers
		ruled   metav1.DeletionPropagation
		gone    bool // its dependents go
		most    int  // live reads
	}{
		"it waits": {nil, metav1.FinalizerDeleteDependents, "", true, 2},
		"it is told to orphan": {owner("uid-boss", true, metav1.FinalizerOrphanDependents),
			metav1.FinalizerDeleteDependents, "", false, 60},
		"it is told to do neither": {owner("uid-boss", true, "example.com/other"), metav1.FinalizerDeleteDependents,
			"", false, 60},
		"it is another, not being deleted": {owner("uid-other", false), metav1.FinalizerDeleteDependents, "", true, 2},
		"it is restored under its uid": {owner("uid-boss", false, metav1.FinalizerDeleteDependents),
			metav1.FinalizerDeleteDependents, "", false, 60},
		"it is gone": {apitest.Refuse(404, "NotFound", "configmaps \"boss\" not found"),
			metav1.FinalizerDeleteDependents, "", true, 2},
		"it cannot be read": {apitest.Refuse(500, "InternalError", "etcd"), metav1.FinalizerDeleteDependents,
			"", false, n * 12},
		"it was ruled to wait": {nil, "weir.dev/propagation", metav1.DeletePropagationForeground, true, 2},
		"it was ruled to wait, and is told to orphan": {owner("uid-boss", true, "weir.dev/propagation",
			metav1.FinalizerOrphanDependents), "weir.dev/propagation",
			metav1.DeletePropagationForeground, false, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEdge(t, nil)
				e.api.Put("configmaps", strings.Replace(withForeground, metav1.FinalizerDeleteDependents, c.watched, 1))
				for i := range n {
					e.api.Put("configmaps",
						fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: leaf-%d, namespace: shop, ownerReferences: "+
							"[{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss, blockOwnerDeletion: true}]}}", i))
				}
				var reads atomic.Int32
				e.api.Intercept(func(r apitest.Request) *apitest.Reply {
					if r.Method != http.MethodGet || !strings.HasSuffix(r.Path, "/configmaps/boss") {
						return nil
					}
					reads.Add(1)
					if c.live != nil && c.live.Code == 404 { // as the API server says it
						c.live.Body.(map[string]any)["details"] = map[string]any{"name": "boss", "kind": "configmaps"}
					}
					return c.live
				})
				e.run(4, func(context.Context) {
					if c.ruled != "" {
						e.store.Apply(graph.Ruled{Kind: fixture.ConfigMaps, UID: "uid-boss", Finalizer: c.watched, Propagation: c.ruled})
					}
					<-time.After(10 * time.Second)
					left := 0
					for i := range n {
						left += len(e.there(fixture.ConfigMaps, fmt.Sprint("leaf-", i)))
					}
					if c.gone && left > 0 || !c.gone && left < n {
						t.Errorf("%d of %d are left", left, n)
					}
					if got := int(reads.Load()); got == 0 || got > c.most {
						t.Errorf("%d live reads of the owner, want 1 to %d", got, c.most)
					}
				})
			})
		})
	}
}

// TestAReadOfAnOwnerCountsForAWhile, and for nothing that came after it: a client takes the
// deletion back, and no watch shows that.
func TestAReadOfAnOwnerCountsForAWhile(t *testing.T) {
	for _, more := range []bool{false, true} {
		t.Run(fmt.Sprint(more), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { aReadCounts(t, more) }) })
	}
}

// aReadCounts has an owner's deletion taken back after the first read; more: a dependent comes
// then.
func aReadCounts(t *testing.T, more bool) {
	e := newEdge(t, far(100*time.Millisecond))
	leaf := func(name string) {
		e.api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+
			", namespace: shop, ownerReferences: "+
			"[{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss, blockOwnerDeletion: true}]}}")
	}
	e.api.Put("configmaps", withForeground)
	n := 100
	if more {
		n = 4 // they are deleted by then, but for one
	}
	leaves := numbered("leaf", n)
	for _, name := range leaves {
		leaf(name)
	}
	var reads atomic.Int32
	e.api.Intercept(func(r apitest.Request) *apitest.Reply {
		if more && r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/"+leaves[0]) {
			return apitest.Refuse(403, "Forbidden", "no") // or else the owner goes
		}
		if r.Method != http.MethodGet || !strings.HasSuffix(r.Path, "/configmaps/boss") || reads.Add(1) == 1 {
			return nil
		}
		return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
			"metadata": map[string]any{"name": "boss", "namespace": "shop", "uid": "uid-boss", "resourceVersion": "999",
				"deletionTimestamp": "2000-01-01T00:00:00Z", "finalizers": []any{metav1.FinalizerOrphanDependents}}}}
	})
	e.run(2, func(context.Context) {
		<-time.After(500 * time.Millisecond)
		if reads.Load() != 1 {
			t.Errorf("%d reads for all that was there", reads.Load())
		}
		if more {
			leaf("late")
		}
		<-time.After(10 * time.Second)
		if left := len(e.there(fixture.ConfigMaps, leaves...)); !more && (left == n || left < n-2*11) {
			t.Errorf("%d of %d are left, want those that were not deleted within %s", left, n, awaitedFor)
		}
		if more && len(e.there(fixture.ConfigMaps, "late")) == 0 {
			t.Error("what came later is deleted on the word of a read before")
		}
	})
}

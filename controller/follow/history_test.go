package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestRestoreForgetsEverything restores a backup in three ways, each of which shows differently.
func TestRestoreForgetsEverything(t *testing.T) {
	for name, bump := range map[string]int{
		"resourceVersions go back":     0,
		"they leap":                    1_000_000_000,
		"they go on, and objects lied": 1_000,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("boss", "")
				e.configMap("changed", "")
				e.configMap("leaf", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]")
				e.whole()
				restore := e.api.Snapshot()
				e.configMap("changed", ", labels: {a: b}")
				e.configMap("late", "")
				e.api.Remove("configmaps/shop/boss")
				e.until(time.Second, "leaf is garbage", func() bool { return e.store.Decide("uid-leaf").Verb == graph.Delete })
				e.pass(5 * time.Second)

				e.api.Down()
				e.pass(time.Second)
				if err := e.history.admit(e.Context()); !errors.Is(err, ErrNoContact) {
					t.Errorf("with nobody there: %v", err)
				}
				restore(bump)
				e.api.Up()
				took := e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 })
				t.Logf("noticed after %s: %s", took, e.back()[0])
				e.untilState(10*time.Second, "configmaps", graph.Synced)
				e.until(5*time.Second, "it is over", func() bool {
					return e.store.Stats().Rewound == "" && !e.history.closed.Load()
				})
				if a := e.store.Decide("uid-leaf"); a.Verb != graph.Keep {
					t.Errorf("%s leaf: %s", a.Verb, a.Why)
				}
				if _, ok := e.store.Find("uid-late"); ok {
					t.Error("what came after the backup is still there")
				}
				e.api.Remove("configmaps/shop/boss")
				e.until(time.Second, "leaf is garbage again", func() bool {
					return e.store.Decide("uid-leaf").Verb == graph.Delete
				})
				e.pass(time.Minute)
				if len(e.back()) != 1 {
					t.Errorf("the history went back %d times: %q", len(e.back()), e.back())
				}
			})
		})
	}
}

// TestNothingIsWrittenBeforeABackupIsNoticed that is younger than the last reading of namespaces,
// and older than what was seen to go since: namespaces alone do not tell.
func TestNothingIsWrittenBeforeABackupIsNoticed(t *testing.T) {
	for name, bump := range map[string]int{"resourceVersions go back": 0, "they go on": 1_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("boss", "")
				e.configMap("leaf", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]")
				e.whole()
				e.pass(5 * time.Second)
				restore := e.api.Snapshot()
				e.api.Remove("configmaps/shop/boss")
				e.until(time.Second, "leaf is garbage", func() bool { return e.store.Decide("uid-leaf").Verb == graph.Delete })

				e.api.Down()
				e.pass(time.Second)
				restore(bump)
				e.api.Up()
				e.until(10*time.Second, "it is noticed", func() bool {
					if len(e.back()) == 0 && e.history.admit(e.Context()) == nil {
						t.Fatal("requests may pass, and the history went back")
					}
					return len(e.back()) > 0
				})
				e.untilState(10*time.Second, "configmaps", graph.Synced)
				if a := e.store.Decide("uid-leaf"); a.Verb != graph.Keep {
					t.Errorf("%s leaf: %s", a.Verb, a.Why)
				}
			})
		})
	}
}

// An API server that starts writes so much that resourceVersions are soon where they were, in a
// cluster with little to do, and goes on showing watches what comes after that.
func TestStorageThatHasCaughtUpIsNotTakenForTheSame(t *testing.T) {
	for name, rewound := range map[string]int{"restored": 1, "the same": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("boss", "")
				e.configMap("leaf", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]")
				e.whole()
				restore := e.api.Snapshot()
				e.configMap("changed", "")
				e.api.Remove("configmaps/shop/boss")
				e.pass(5 * time.Second)
				e.api.Down()
				e.pass(time.Second)
				if rewound > 0 {
					restore(0)
				}
				for range 50 {
					e.api.Put("roles",
						"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: bootstrap, namespace: shop}}")
				}
				e.api.Up()
				e.until(listedWithin+10*time.Second, "requests may pass", func() bool {
					return e.history.admit(e.Context()) == nil && e.store.Stats().Rewound == ""
				})
				if have := e.back(); len(have) != rewound {
					t.Errorf("the history went back %d times, want %d: %q", len(have), rewound, have)
				}
				e.until(10*time.Second, "ConfigMaps are listed", func() bool { return e.kind("configmaps").State == graph.Synced })
				if a := e.store.Decide("uid-leaf"); (a.Verb == graph.Keep) != (rewound == 1) {
					t.Errorf("%s leaf: %s", a.Verb, a.Why)
				}
			})
		})
	}
}

func TestQuietClusterIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		for i := range 20 {
			e.api.Down()
			e.configMap(fmt.Sprint(i), "")
			e.pass(time.Duration(i) * time.Second)
			e.api.Up()
			e.pass(time.Minute)
		}
		if len(e.back()) > 0 || e.history.closed.Load() {
			t.Errorf("closed %t, rewound %q", e.history.closed.Load(), e.back())
		}
	})
}

// An API that forgets at each of its restarts what its resourceVersions were must not keep Weir
// from working. If its storage is another one, what was seen to go may be there again.
func TestAggregatedAPIThatGoesBackIsListedAgainAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.serve("gadgets.aggregated.example.com", "Gadget v1")
		e.configMap("leaf",
			", uid: leaf, ownerReferences: [{apiVersion: aggregated.example.com/v1, kind: Gadget, name: boss, uid: gadget}]")
		e.api.Put("gadgets",
			"{apiVersion: aggregated.example.com/v1, kind: Gadget, metadata: {name: boss, namespace: shop, uid: gadget}}")
		e.whole()
		e.untilState(5*time.Second, "gadgets.aggregated.example.com", graph.Synced)
		decision := func() (verb graph.Verb) {
			e.store.Read(func(g *graph.Graph) { verb = g.Decide("leaf").Verb })
			return verb
		}
		e.api.Remove("gadgets.aggregated.example.com/shop/boss")
		e.until(time.Second, "its owner is seen to go", func() bool { return decision() == graph.Delete })
		decided := e.history.Mark(e.Context())
		lists, gadgets := e.listsOf("configmaps"), e.listsOf("gadgets")
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/gadgets") && !strings.Contains(r.Query, "watch=true") &&
				e.listsOf("gadgets") == gadgets+1 {
				return &apitest.Reply{Code: 200, Body: raw(`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "1"}, "items": []}`)}
			}
			return nil
		})
		e.watcher.follower(schema.GroupResource{Group: "aggregated.example.com",
			Resource: "gadgets"}).current.Interface.Stop()
		e.until(time.Minute, "gadgets are listed anew", func() bool {
			return e.listsOf("gadgets") > gadgets+1 && e.kind("gadgets.aggregated.example.com").State == graph.Synced
		})
		if verb := decision(); verb != graph.Lookup {
			t.Errorf("what its owner owned: %s", verb)
		}
		if err := e.history.admit(decided); !errors.Is(err, ErrRewound) {
			t.Errorf("what was decided before is sent: %v", err)
		}
		e.pass(time.Minute)
		if len(e.back()) > 0 || e.listsOf("configmaps") != lists {
			t.Errorf("%d more lists of ConfigMaps, rewound: %q", e.listsOf("configmaps")-lists, e.back())
		}
		if e.history.closed.Load() {
			t.Error("the gate stays closed")
		}
	})
}

// A failing aggregated API, whose resourceVersions are far ahead, does not keep the others from
// being written.
func TestFailingAggregatedAPIHoldsNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.serve("gadgets.aggregated.example.com", "Gadget v1")
		e.configMap("boss", "")
		e.whole()
		e.untilState(5*time.Second, "gadgets.aggregated.example.com", graph.Synced)
		e.fail(refusing("gadgets", apitest.Refuse(500, "InternalError", "no")))
		e.history.lost()
		if took := e.until(time.Minute, "requests may pass", func() bool {
			return e.history.admit(e.Context()) == nil
		}); took > 2*aggregatedWithin {
			t.Errorf("requests may pass after %s", took)
		}
	})
}

func TestWhoMayNotListNamespacesWorksAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.fail(refusing("namespaces", apitest.Refuse(403, "Forbidden", "no")))
		e.start()
		e.untilState(5*time.Second, "configmaps", graph.Synced)
		began := time.Now()
		e.history.lost()
		for err := ErrRewound; err != nil; { // what was decided before may be void
			if _, err = e.history.Enter(e.Context()); err != nil && !errors.Is(err, ErrRewound) {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > listedWithin {
			t.Errorf("after %s", took)
		}
	})
}

// An API server that is told to leave ends its watches, and goes on answering for a while. No
// request may be the first to find out that it is gone, and another one there, by a write.
func TestGateStaysClosedWhileAnAPIServerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		restore := e.api.Snapshot()
		e.configMap("late", "")
		e.pass(5 * time.Second)
		if e.history.closed.Load() {
			t.Fatal("the gate is closed, and all is well")
		}
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Query, "watch=true") {
				return apitest.Refuse(503, "ServiceUnavailable", "leaving")
			}
			return nil
		})
		e.api.Down()
		e.api.Up() // all watches have ended
		for i := range 200 {
			e.pass(50 * time.Millisecond)
			switch i {
			case 50:
				e.api.Down()
			case 100:
				restore(0)
				e.fail(nil)
				e.api.Up()
			}
			if !e.history.closed.Load() && len(e.back()) == 0 {
				t.Fatalf("the gate is open after %d ms", 50*i)
			}
		}
		e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 })
	})
}

// TestDecisionOfAnotherHistoryIsNotSent has a request wait while the history goes back.
func TestDecisionOfAnotherHistoryIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.configMap("leaf", "")
		e.whole()
		restore := e.api.Snapshot()
		e.configMap("late", "")
		e.pass(5 * time.Second)
		e.api.Down()
		e.pass(time.Second)
		done := make(chan error, 1)
		go func() { done <- e.remove(e.Context(), "leaf") }()
		synctest.Wait()
		restore(0)
		e.api.Up()
		if err := <-done; !errors.Is(err, ErrRewound) {
			t.Errorf("the request ended with %v", err)
		}
		if e.api.Get("configmaps/shop/leaf") == nil {
			t.Error("leaf is gone")
		}
		// What is decided now is sent, and what was decided before is not, however often it is
		// tried.
		old := context.WithValue(e.Context(), epochKey{}, uint32(0))
		if err := e.remove(old, "leaf"); !errors.Is(err, ErrRewound) {
			t.Errorf("the old decision ended with %v", err)
		}
		if err := e.remove(e.Context(), "leaf"); err != nil {
			t.Error(err)
		}
	})
}

// TestDecisionWhileTheGraphForgetsIsNotSent: that the history went back is known then, and the
// graph still shows what was before.
func TestDecisionWhileTheGraphForgetsIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.configMap("leaf", "")
		var decided context.Context
		e.watcher.Listen(Listener{Rewound: func(string) {
			if _, there := e.store.Find("uid-leaf"); !there {
				t.Error("the graph has forgotten")
			}
			decided = e.history.Mark(e.Context())
		}})
		e.whole()
		restore := e.api.Snapshot()
		e.configMap("late", "")
		e.pass(5 * time.Second)
		restore(0)
		e.api.Down()
		e.api.Up()
		e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 })
		e.until(10*time.Second, "the gate is open", func() bool { return !e.history.closed.Load() })
		if err := e.remove(decided, "leaf"); !errors.Is(err, ErrRewound) {
			t.Errorf("the request ended with %v", err)
		}
		if e.api.Get("configmaps/shop/leaf") == nil {
			t.Error("leaf is gone")
		}
	})
}

// remove deletes a ConfigMap as requests do: it waits for contact, and the guard is the last to see
// it.
func (e *watching) remove(ctx context.Context, name string) error {
	ctx, err := e.history.Enter(ctx)
	if err != nil {
		return err
	}
	config := e.api.Config()
	client, err := metadata.NewForConfigAndClient(config, &http.Client{Transport: e.history.Guard(config.Transport)})
	if err != nil {
		return err
	}
	uid := types.UID("uid-" + name)
	return client.Resource(fixture.ConfigMaps.WithVersion("v1")).Namespace("shop").Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}

// TestHistoryThatIsShownByALaterPageVoidsWhatTheFirstShowed: the graph has each page of a list as
// it comes, and nothing may follow from the first before the last.
func TestHistoryThatIsShownByALaterPageVoidsWhatTheFirstShowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.configMap("a-leaf", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: z-boss, uid: uid-z-boss}]")
		e.configMap("z-boss", "")
		e.many()
		h := e.halt()
		h.halfway()
		h.goOn <- nil
		e.untilState(time.Second, "configmaps", graph.Synced)
		e.pass(2 * time.Second)
		restore := e.api.Snapshot()
		e.api.Remove("configmaps/shop/z-boss")
		e.pass(time.Second)
		e.api.Down()
		restore(1_000)
		e.api.Up()
		<-h.reached // its owner is on the next page
		synctest.Wait()
		if a := e.decides("uid-a-leaf"); a.Verb == graph.Delete && e.history.admit(e.Context()) == nil {
			t.Errorf("requests may pass, and %s leaf: %s", a.Verb, a.Why)
		}
		h.goOn <- nil
		<-h.reached
		h.goOn <- nil
		e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 && e.store.Rewound() == "" })
		if a := e.decides("uid-a-leaf"); a.Verb != graph.Keep {
			t.Errorf("%s leaf: %s", a.Verb, a.Why)
		}
	})
}

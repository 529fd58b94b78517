package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

func TestReadingsOfOneHistory(t *testing.T) {
	start := time.Now()
	for name, c := range map[string]struct {
		before, now uint64
		took        time.Duration
		contradicts bool
	}{
		"the same":                      {100, 100, time.Second, false},
		"more":                          {100, 101, time.Second, false},
		"less":                          {100, 99, time.Second, true},
		"nothing was seen":              {0, 99, time.Second, false},
		"versions that are no numbers":  {100, 0, time.Second, false},
		"a busy cluster":                {100, 1_000_000, 0, false},
		"a leap":                        {100, 1_200_000, time.Second, true},
		"as much in a minute":           {100, 1_200_000, time.Minute, false},
		"etcd's bump":                   {100, 1_000_000_100, time.Hour, true},
		"a clock that was set back":     {100, 1_000_101, -time.Hour, true},
		"a machine that slept for long": {100, 1_000_000_000, 24 * time.Hour, false},
		"a leap of all that there is":   {100, 1 << 63, 1000 * time.Hour, true},
	} {
		why := reading{c.now, start.Add(c.took)}.contradicts(reading{c.before, start})
		if (why != "") != c.contradicts {
			t.Errorf("%s: %q", name, why)
		}
	}
}

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
				e.pass(probeEvery)

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
				e.until(5*time.Second, "it is over", func() bool { return e.store.Stats().Rewound == "" && !e.history.closed.Load() })
				if a := e.store.Decide("uid-leaf"); a.Verb != graph.Keep {
					t.Errorf("%s leaf: %s", a.Verb, a.Why)
				}
				if _, ok := e.store.Find("uid-late"); ok {
					t.Error("what came after the backup is still there")
				}
				e.api.Remove("configmaps/shop/boss")
				e.until(time.Second, "leaf is garbage again", func() bool { return e.store.Decide("uid-leaf").Verb == graph.Delete })
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
				e.pass(probeEvery)
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
				e.pass(probeEvery)
				e.api.Down()
				e.pass(time.Second)
				if rewound > 0 {
					restore(0)
				}
				for range 50 {
					e.api.Put("roles", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: bootstrap, namespace: shop}}")
				}
				e.api.Up()
				e.until(followTimeout+10*time.Second, "requests may pass", func() bool { return e.history.admit(e.Context()) == nil && e.store.Stats().Rewound == "" })
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

// Nothing breaks when an API server is replaced by one whose storage is older: the probe alone sees
// it.
func TestProbeAloneSeesAnOlderStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		restore := e.api.Snapshot()
		e.configMap("late", "")
		e.pass(probeEvery)
		restore(0)
		took := e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 })
		if took > probeEvery {
			t.Errorf("noticed after %s", took)
		}
		e.until(5*time.Second, "late is not there", func() bool { return e.kind("configmaps").State == graph.Synced && e.kind("configmaps").Objects == 0 })
	})
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
		e.configMap("leaf", ", uid: leaf, ownerReferences: [{apiVersion: aggregated.example.com/v1, kind: Gadget, name: boss, uid: gadget}]")
		e.api.Put("gadgets", "{apiVersion: aggregated.example.com/v1, kind: Gadget, metadata: {name: boss, namespace: shop, uid: gadget}}")
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
			if strings.HasSuffix(r.Path, "/gadgets") && strings.Contains(r.Query, "limit=1") {
				return &apitest.Reply{Code: 200, Body: raw(`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "1"}, "items": []}`)}
			}
			return nil
		})
		e.api.Down()
		e.pass(time.Second)
		e.api.Up()
		e.until(time.Minute, "gadgets are listed anew", func() bool {
			return e.listsOf("gadgets") > gadgets && e.kind("gadgets.aggregated.example.com").State == graph.Synced
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
		for _, k := range e.watcher.Followed() {
			if k.Feed.Kind.Resource == "gadgets" {
				k.Feed.Reached.Store(1 << 40)
			}
		}
		e.fail(refusing("gadgets", apitest.Refuse(500, "InternalError", "no")))
		e.history.lost()
		if took := e.until(time.Minute, "requests may pass", func() bool { return e.history.admit(e.Context()) == nil }); took > time.Second {
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
		if _, err := e.history.Enter(e.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > forbiddenAfter+probeEvery {
			t.Errorf("after %s", took)
		}
	})
}

// An API server that starts has not read the roles yet, and refuses everybody.
func TestForbiddenProvesNothingWhileAnAPIServerStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		restore := e.api.Snapshot()
		e.configMap("late", "")
		e.pass(probeEvery)
		e.api.Down()
		e.pass(time.Second)
		restore(0)
		e.fail(func(apitest.Request) *apitest.Reply {
			return apitest.Refuse(403, "Forbidden", "roles are not there yet")
		})
		e.api.Up()
		for range 100 {
			e.pass(100 * time.Millisecond)
			if !e.history.closed.Load() {
				t.Fatal("the gate is open, and nobody knows whether the history went back")
			}
		}
		e.fail(nil)
		e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 })
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
		e.pass(probeEvery)
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
		e.pass(probeEvery)
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
		old := context.WithValue(e.Context(), epochKey{}, uint64(0))
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
		e.pass(probeEvery)
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

func TestWhatClosesTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		closes := map[string]bool{}
		for name, reply := range map[string]*apitest.Reply{
			"storage in trouble":         apitest.Refuse(500, "InternalError", "etcdserver: request timed out"),
			"time-out":                   apitest.Refuse(504, "Timeout", "the request did not complete within the allotted timeout"),
			"kind that is called so":     apitest.Refuse(500, "ServerTimeout", "The delete operation against validatingwebhookconfigurations.admissionregistration.k8s.io could not be completed at this time, please try again."),
			"object that is called so":   apitest.Refuse(504, "Timeout", `delete secrets "my-webhook": the request did not complete within the allotted timeout`),
			"conversion that fails":      apitest.Refuse(500, "InternalError", "conversion webhook for example.com/v1, Kind=Widget failed: EOF"),
			"webhook that fails":         apitest.Refuse(500, "InternalError", `Internal error occurred: failed calling webhook "x": EOF`),
			"aggregated API that is off": apitest.Refuse(503, "ServiceUnavailable", "error trying to reach service"),
			"object that is too large":   apitest.Refuse(500, "InternalError", "etcdserver: request is too large"),
			"request that is too large":  apitest.Refuse(500, "InternalError", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2361000 vs. 2097152)"),
			"refusal":                    apitest.Refuse(403, "Forbidden", "no"),
			"throttled":                  apitest.Refuse(429, "TooManyRequests", "later"),
			"conflict":                   apitest.Refuse(409, "Conflict", "no"),
		} {
			e.history.mu.Lock()
			before := e.history.losses
			e.history.mu.Unlock()
			e.fail(refusing("leaf", reply))
			err := e.remove(e.Context(), "leaf")
			if err == nil || !strings.Contains(err.Error(), reply.Body.(map[string]any)["message"].(string)) {
				t.Errorf("%s: the answer became %v", name, err)
			}
			e.history.mu.Lock()
			closes[name] = e.history.losses > before
			e.history.mu.Unlock()
			e.until(5*time.Second, "the gate is open", func() bool { return !e.history.closed.Load() })
		}
		if diff := cmp.Diff(map[string]bool{"storage in trouble": true, "time-out": true, "kind that is called so": true, "object that is called so": true, "conversion that fails": false, "webhook that fails": false,
			"aggregated API that is off": false, "object that is too large": false, "request that is too large": false, "refusal": false, "throttled": false, "conflict": false}, closes); diff != "" {
			t.Errorf("what closes the gate (-want +have):\n%s", diff)
		}
	})
}

func TestLongAnswerIsWholeAfterItWasLookedAt(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	resp := &http.Response{StatusCode: 500, Body: io.NopCloser(strings.NewReader(long))}
	if aboutItself(resp) {
		t.Error("it is not about a webhook")
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != long {
		t.Errorf("%d of %d bytes, %v", len(body), len(long), err)
	}
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
	return client.Resource(fixture.ConfigMaps.WithVersion("v1")).Namespace("shop").Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
}

func TestReadThatBeganBeforeContactWasLostProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		answer := make(chan struct{})
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/namespaces") {
				<-answer
			}
			return nil
		})
		e.history.lost()
		synctest.Wait() // a read is under way
		e.history.lost()
		answer <- struct{}{}
		synctest.Wait()
		if !e.history.closed.Load() {
			t.Error("the gate is open")
		}
		close(answer)
		e.until(time.Second, "the gate is open", func() bool { return !e.history.closed.Load() })
	})
}

// Writes wait for a read that shows that the history goes on, and go on themselves however long it
// takes.
func TestSlowProofsDoNotStopWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.configMap("leaf", "")
		e.whole()
		e.pass(probeEvery)
		const slow = 3 * time.Second
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/namespaces") && strings.Contains(r.Query, "limit=1") {
				<-time.After(slow)
			}
			return nil
		})
		e.pass(freshFor)
		began := time.Now()
		if err := e.remove(e.Context(), "leaf"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < slow || took > 2*slow {
			t.Errorf("it took %s, want to wait for one read of %s", took, slow)
		}
	})
}

// An API server whose storage is replaced under it goes on listing what it had cached, at the
// resourceVersions of before.
func TestLeaseTellsOfAStorageThatWasReplacedUnderItsAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		renew := func() {
			e.api.Put("leases", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: apiserver-1, namespace: kube-system, uid: lease, labels: {apiserver.kubernetes.io/identity: kube-apiserver}}}")
		}
		renew()
		e.configMap("leaf", "")
		e.whole()
		restore := e.api.Snapshot()
		e.configMap("late", "")
		renew()
		e.pass(findEvery)
		decided := e.history.Mark(e.Context())
		cached := e.api.Get("leases.coordination.k8s.io/kube-system/apiserver-1")["metadata"].(map[string]any)["resourceVersion"]
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/namespaces") && strings.Contains(r.Query, "limit=1") {
				return &apitest.Reply{Code: 200, Body: raw(fmt.Sprintf(
					`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": %q}, "items": []}`, cached))}
			}
			return nil
		})
		restore(0)
		renew()
		// No connection has ended: what was decided before, and waited for its turn, is the first
		// to know.
		if err := e.remove(decided, "leaf"); !errors.Is(err, ErrRewound) && !errors.Is(err, ErrNoContact) {
			t.Errorf("what was decided before was sent: %v", err)
		}
		e.until(probeEvery, "it is noticed", func() bool { return len(e.back()) > 0 })
		if !strings.Contains(e.back()[0], "Lease apiserver-1 has resourceVersion") {
			t.Errorf("it was noticed by %q", e.back())
		}
		e.pass(time.Minute)
		if len(e.back()) != 1 {
			t.Errorf("it was noticed by %q", e.back())
		}
	})
}

package follow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// Watches are waited for as long as this API server answers. One that answered for a moment, and
// went, has used up nothing of the time that the next one has: that may be the restored one, of
// which only a list tells.
func TestEachAPIServerThatComesBackHasItsTimeToBeListed(t *testing.T) {
	for name, away := range map[string]func(*watching){
		"nobody is there": func(e *watching) { e.api.Down() },
		"its storage does not answer": func(e *watching) {
			e.fail(func(apitest.Request) *apitest.Reply {
				return apitest.Refuse(500, "InternalError", "etcdserver: no leader")
			})
		},
		"it may not be asked": func(e *watching) {
			e.api.Down() // all watches have ended
			e.fail(func(apitest.Request) *apitest.Reply {
				return apitest.Refuse(403, "Forbidden", "roles are not there yet")
			})
			e.api.Up()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("boss", "")
				e.configMap("leaf", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]")
				e.whole()
				restore := e.api.Snapshot()
				e.api.Remove("configmaps/shop/boss") // which no reading of namespaces is as late as
				synctest.Wait()
				watches := func(r apitest.Request) *apitest.Reply {
					if strings.HasSuffix(r.Path, "/configmaps") &&
						(strings.Contains(r.Query, "watch=true") || !strings.Contains(r.Query, "limit=1")) {
						return apitest.Refuse(429, "TooManyRequests", "storage is (re)initializing")
					}
					return nil
				}
				e.fail(watches)
				e.api.Down()
				e.pass(time.Second)
				e.api.Up()
				e.pass(3 * time.Second)
				if !e.history.closed.Load() {
					t.Fatal("the gate is open, and ConfigMaps are behind")
				}
				away(e)
				e.pass(2 * listedWithin)
				restore(1_000)
				e.fail(watches)
				e.api.Up()
				for range 100 {
					e.pass(100 * time.Millisecond)
					if a := e.decides("uid-leaf"); e.history.admit(e.Context()) == nil && a.Verb == graph.Delete {
						t.Fatalf("requests may pass, and the history went back: %s leaf: %s", a.Verb, a.Why)
					}
				}
				e.fail(nil)
				e.until(3*mostRetry, "leaf is kept", func() bool { return e.decides("uid-leaf").Verb == graph.Keep })
			})
		})
	}
}

// TestAggregatedAPIThatHangsHoldsNoWrites: each attempt to follow it ends without an answer, as if
// contact were lost.
func TestAggregatedAPIThatHangsHoldsNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.serve("gadgets.aggregated.example.com", "Gadget v1")
		e.serve("gizmos.aggregated.example.com", "Gizmo v1")
		e.serve("gears.aggregated.example.com", "Gear v1")
		e.configMap("boss", "")
		e.whole()
		e.untilState(5*time.Second, "gadgets.aggregated.example.com", graph.Synced)
		e.hang = func(path string) bool { return strings.HasPrefix(path, "/apis/aggregated.example.com") }
		e.api.Down()
		e.api.Up()
		open := 0
		for range 600 {
			e.pass(time.Second)
			if e.history.admit(e.Context()) == nil {
				open++
			}
		}
		if open < 500 {
			t.Errorf("the gate was open in %d of 600 seconds", open)
		}
		if len(e.back()) > 0 {
			t.Error(e.back())
		}
	})
}

// Whose history went back cannot be told while APIServices cannot be read: nothing is written, and
// nothing is forgotten, of that either.
func TestWhoseHistoryWentBackIsAskedUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.serve("gadgets.aggregated.example.com", "Gadget v1")
		e.whole()
		e.untilState(5*time.Second, "gadgets.aggregated.example.com", graph.Synced)
		gadgets, widgets := e.listsOf("gadgets"), e.listsOf("widgets")
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasPrefix(r.Path, "/apis/apiregistration.k8s.io") {
				return apitest.Refuse(500, "InternalError", "no")
			}
			return nil
		})
		for _, f := range e.watcher.followers() {
			if f.Kind.Group == "aggregated.example.com" {
				e.history.contradicted(f.gvr, "test")
			}
		}
		for range 100 {
			e.pass(time.Second)
			if !errors.Is(e.history.admit(e.Context()), ErrNoContact) {
				t.Fatal("requests may pass")
			}
		}
		if e.listsOf("gadgets") != gadgets {
			t.Error("gadgets are listed again before it is known whether the others are")
		}
		e.fail(nil)
		e.until(5*time.Second, "gadgets are listed again", func() bool { return e.listsOf("gadgets") > gadgets })
		e.until(5*time.Second, "requests may pass", func() bool { return e.history.admit(e.Context()) == nil })
		if len(e.back()) > 0 || e.listsOf("widgets") != widgets {
			t.Errorf("widgets are listed again, too, because %q", e.back())
		}
	})
}

// Who waits for the gate or for a proof ends with its context, and hears why that ended.
func TestWhoWaitsForTheGateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("the Lease is lost")
		h := newHistory(nil, logr.Discard())
		for name, wait := range map[string]func(context.Context) error{
			"for contact": func(ctx context.Context) error { h.closed.Store(true); _, err := h.Enter(ctx); return err },
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- wait(ctx) }()
			synctest.Wait()
			if len(ended) > 0 {
				t.Errorf("%s: nobody waits", name)
			}
			cancel(why)
			if err := <-ended; !errors.Is(err, why) {
				t.Errorf("%s: it ended with %v", name, err)
			}
		}
	})
}

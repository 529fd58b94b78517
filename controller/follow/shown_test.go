package follow

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// A watch of which the API server says that its cache has not come as far as was written counts as
// broken, and is taken up again.
func TestWatchThatShowsNothingIsBroken(t *testing.T) {
	tooLarge := &apitest.Reply{Code: 504, Body: raw(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout", "code": 504,
		"message": "Too large resource version", "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}}`)}
	never := &apitest.Reply{}
	for name, c := range map[string]struct {
		version string
		answer  *apitest.Reply
		far     bool // it is asked for more than its storage has
		asked   bool
		behind  bool
		all     bool // it is the same with all kinds
	}{
		"its cache has come as far":      {"v1.36.3", nil, false, true, false, false},
		"its cache has not":              {"v1.36.3", tooLarge, false, true, true, false},
		"the API server does not answer": {"v1.36.3", never, false, true, true, false},
		"the kind may not be read": {"v1.36.3", apitest.Refuse(403, "Forbidden", "no"), false, true,
			false, false},
		"it is in a storage of its own":            {"v1.36.3", tooLarge, true, true, false, false},
		"no cache has":                             {"v1.36.3", tooLarge, false, true, false, true},
		"caches do not follow when they are asked": {"v1.30.14", tooLarge, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				var asked atomic.Int32 // kinds are asked side by side
				e.hang = func(path string) bool { return c.answer == never && strings.Contains(path, "/configmaps/") }
				e.fail(func(r apitest.Request) *apitest.Reply {
					switch {
					case r.Path == "/version":
						return &apitest.Reply{Code: 200, Body: raw(`{"gitVersion": "` + c.version + `"}`)}
					case c.all && strings.HasSuffix(r.Path, "/weir-asks-for-nothing"):
					case !strings.Contains(r.Path, "/configmaps/"):
						return nil
					}
					asked.Add(1)
					return c.answer
				})
				e.whole()
				e.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: another}}")
				e.pass(time.Second)
				o := graph.Ref{ResourceVersion: fmt.Sprint(e.watcher.follower(kinds.Namespaces).Reached.Load())}
				if c.far {
					o.ResourceVersion = "1000"
				}
				if took := e.until(shownWithin+time.Second, "it is known", func() bool {
					return e.watcher.Shown(o)
				}); took > time.Second && c.answer != never {
					t.Errorf("it took %s", took)
				}
				if have := e.behind("configmaps"); have != "" != c.behind {
					t.Errorf("ConfigMaps are behind: %q, want %t", have, c.behind)
				}
				if c.answer != never && asked.Load() > 0 != c.asked {
					t.Errorf("it was asked %d times, want %t", asked.Load(), c.asked)
				}
				if why := e.behind("widgets.example.com"); why != "" {
					t.Errorf("widgets are behind: %s", why)
				}
				e.fail(nil)
				e.until(2*mostRetry, "ConfigMaps are level", func() bool { return e.behind("configmaps") == "" })
			})
		})
	}
}

func TestWhatWasShownIsForgottenWhenTheHistoryGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		o := graph.Ref{ResourceVersion: "1000"}
		e.until(time.Second, "it is known", func() bool { return e.watcher.Shown(o) })
		e.watcher.rewind(t.Context(), "restored")
		if e.watcher.Shown(o) {
			t.Error("what was shown in another history counts")
		}
	})
}

// TestWhatIsBeingFoundOutIsAskedAboutOnce: whoever waits asks again and again, and the next one who
// asks about something newer would have to wait for another round about nothing.
func TestWhatIsBeingFoundOutIsAskedAboutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		var asked atomic.Int32
		e.fail(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/version" {
				return &apitest.Reply{Code: 200, Body: raw(`{"gitVersion": "v1.36.3"}`)}
			}
			if strings.HasSuffix(r.Path, "/configmaps/weir-asks-for-nothing") {
				asked.Add(1)
			}
			return nil
		})
		e.whole()
		e.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: another}}")
		e.pass(time.Second)
		o := graph.Ref{ResourceVersion: fmt.Sprint(e.watcher.follower(kinds.Namespaces).Reached.Load())}
		for range 3 {
			if e.watcher.Shown(o) {
				t.Error("it is known at once")
			}
			synctest.Wait()
		}
		e.pass(time.Second)
		if n := asked.Load(); n != 1 || !e.watcher.Shown(o) {
			t.Errorf("ConfigMaps were asked about %d times, and it is known: %t", n, e.watcher.Shown(o))
		}
	})
}

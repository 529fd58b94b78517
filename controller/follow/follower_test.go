package follow

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

func TestWatchThatEndsWhenItWasAskedToIsNotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		lists := e.listsOf("configmaps")
		for range 190 { // 19 minutes: each watch takes 5 to 10, and the first of three hourly lists comes after 20
			e.pass(6 * time.Second)
			if why := e.behind("configmaps"); why != "" {
				t.Fatal(why)
			}
		}
		if have := e.listsOf("configmaps"); have != lists {
			t.Errorf("%d more lists, want none", have-lists)
		}
	})
}

func TestKindWhoseWatchBrokeIsBehindUntilItIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.configMap("old", "")
		e.whole()
		lists := e.listsOf("configmaps")
		e.api.Down()
		e.until(time.Second, "ConfigMaps are behind", func() bool {
			return strings.Contains(e.behind("configmaps"), "connection refused")
		})
		e.configMap("new", "")
		e.pass(time.Minute)
		if e.behind("configmaps") == "" {
			t.Error("not behind any more, with nobody there")
		}
		e.api.Up()
		e.until(2*mostRetry, "ConfigMaps are level", func() bool { return e.behind("configmaps") == "" })
		if n := e.kind("configmaps").Objects; n != 2 {
			t.Errorf("%d objects, want both", n)
		}
		e.until(2*mostRetry, "widgets are level", func() bool { return e.behind("widgets.example.com") == "" })
		if have := e.listsOf("configmaps"); have != lists+1 {
			t.Errorf("%d lists more, want one", have-lists)
		}
	})
}

func TestWatchFromTooLongAgoIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.configMap("staying", "")
		e.configMap("leaving", "")
		e.whole()
		lists := e.listsOf("configmaps")
		e.api.Remove("configmaps/shop/leaving")
		e.api.Cut()
		e.until(5*time.Second, "ConfigMaps are listed anew", func() bool {
			return e.listsOf("configmaps") > lists && e.behind("configmaps") == ""
		})
		if n := e.kind("configmaps").Objects; n != 1 {
			t.Errorf("%d objects, want 1", n)
		}
		e.configMap("coming", "")
		e.until(time.Second, "the watch goes on", func() bool { return e.kind("configmaps").Objects == 2 })
		if len(e.back()) > 0 {
			t.Error(e.back())
		}
	})
}

func TestKindIsForbiddenOnceNothingButThatWasAnsweredForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.fail(refusing("widgets", apitest.Refuse(403, "Forbidden", "widgets is forbidden")))
		e.start()
		e.untilState(5*time.Second, "widgets.example.com", graph.Failing)
		took := e.untilState(3*time.Minute, "widgets.example.com", graph.Forbidden)
		if took < forbiddenAfter-5*time.Second || took > forbiddenAfter+mostListPause {
			t.Errorf("forbidden after %s", took)
		}
		e.pass(time.Hour)
		e.fail(nil) // the right is granted
		e.untilState(mostForbiddenPause+time.Second, "widgets.example.com", graph.Synced)
	})
}

func TestOtherAnswersMakeForbiddenCountFromOneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.fail(refusing("widgets", apitest.Refuse(403, "Forbidden", "widgets is forbidden")))
		e.start()
		e.pass(forbiddenAfter - 10*time.Second)
		e.fail(refusing("widgets", apitest.Refuse(500, "InternalError", "no")))
		e.pass(mostListPause)
		e.fail(refusing("widgets", apitest.Refuse(403, "Forbidden", "widgets is forbidden")))
		e.pass(forbiddenAfter)
		if s := e.kind("widgets.example.com").State; s != graph.Failing {
			t.Errorf("it is %s", s)
		}
	})
}

func TestSlowListIsSlowAndThenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		answer := make(chan struct{})
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/widgets") {
				<-answer
			}
			return nil
		})
		e.start()
		e.pass(slowAfter - time.Second)
		if s := e.kind("widgets.example.com").State; s != graph.Listing {
			t.Errorf("it is %s before its time", s)
		}
		e.untilState(2*time.Second, "widgets.example.com", graph.Slow)
		e.pass(failingAfter - slowAfter - 5*time.Second)
		if s := e.kind("widgets.example.com").State; s != graph.Slow {
			t.Errorf("it is %s before its time", s)
		}
		e.untilState(6*time.Second, "widgets.example.com", graph.Failing)
		close(answer)
		e.untilState(time.Second, "widgets.example.com", graph.Synced)
	})
}

// Weir tries again, or client-go does for it and says nothing.
func TestKindThatIsSentAwayFails(t *testing.T) {
	for name, later := range map[string]bool{"by Weir": false, "by client-go": true} {
		t.Run("tried again "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.later = later
				away := refusing("widgets", apitest.Refuse(429, "TooManyRequests", "storage is (re)initializing"))
				e.fail(away)
				e.start()
				e.pass(slowAfter - time.Second)
				if s := e.kind("widgets.example.com").State; s != graph.Listing {
					t.Errorf("it is %s before its time", s)
				}
				e.untilState(slowAfter+time.Second, "widgets.example.com", graph.Failing)
				why := e.kind("widgets.example.com").Reason
				if !strings.Contains(why, "storage is (re)initializing") && !strings.Contains(why, "429 Too Many Requests") {
					t.Errorf("the reason is %q", why)
				}
				e.fail(nil)
				e.untilState(2*mostRetry, "widgets.example.com", graph.Synced)
				e.pass(2 * time.Second)

				e.fail(away)
				e.api.Down()
				e.api.Up()
				e.until(unwatchedFor, "widgets are behind", func() bool { return e.behind("widgets.example.com") != "" })
				e.fail(nil)
				e.until(2*mostRetry, "widgets are level", func() bool { return e.behind("widgets.example.com") == "" })
			})
		})
	}
}

func TestWatchThatIsNotAnsweredIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		answer := make(chan struct{})
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/configmaps") {
				<-answer
			}
			return nil
		})
		e.api.Down()
		e.api.Up() // the connection broke, and a new one hangs
		e.until(unwatchedFor+time.Second, "ConfigMaps are behind", func() bool { return e.behind("configmaps") != "" })
		close(answer)
		e.until(2*mostRetry, "ConfigMaps are level", func() bool { return e.behind("configmaps") == "" })
	})
}

// TestRequestThatIsNeverAnsweredIsMadeAgain: seen once, of one kind, when an API server was killed.
func TestRequestThatIsNeverAnsweredIsMadeAgain(t *testing.T) {
	for name, within := range map[string]time.Duration{"watch": answeredWithin, "list": failingAfter} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.whole()
				var hung atomic.Bool
				e.alter = func(r *http.Request) {
					watch := r.URL.Query().Get("watch") != ""
					if strings.HasSuffix(r.URL.Path, "/configmaps") && watch == (name == "watch") && hung.CompareAndSwap(false, true) {
						<-r.Context().Done()
					}
				}
				e.api.Down()
				e.api.Up()
				e.until(mostRetry, "one hangs", hung.Load)
				e.pass(within - time.Second)
				if e.behind("configmaps") == "" {
					t.Error("ConfigMaps are level before the request was given up")
				}
				e.until(2*mostRetry, "ConfigMaps are level", func() bool { return e.behind("configmaps") == "" })
				if n := e.losses(); n > 1 {
					t.Errorf("the gate was shut %d times", n)
				}
			})
		})
	}
}

// refusing answers every request about a resource.
func refusing(resource string, reply *apitest.Reply) func(apitest.Request) *apitest.Reply {
	return func(r apitest.Request) *apitest.Reply {
		if strings.HasSuffix(r.Path, "/"+resource) {
			return reply
		}
		return nil
	}
}

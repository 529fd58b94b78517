package follow

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// A list shows what was, and nothing of what comes: until there is a watch, the kind is not
// followed.
func TestListWithoutAWatchIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		hold := make(chan struct{})
		answer := sync.OnceFunc(func() { close(hold) })
		defer answer()
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/configmaps") && strings.Contains(r.Query, "watch=true") {
				<-hold
			}
			return nil
		})
		e.start()
		e.untilState(5*time.Second, "configmaps", graph.Synced)
		e.configMap("late", "")
		e.until(unwatchedFor+time.Second, "ConfigMaps are behind", func() bool { return e.behind("configmaps") != "" })
		if why := e.behind("widgets.example.com"); why != "" {
			t.Errorf("widgets are watched, and behind: %s", why)
		}
		answer()
		e.until(2*mostRetry, "ConfigMaps are level", func() bool { return e.behind("configmaps") == "" })
		if n := e.kind("configmaps").Objects; n != 1 {
			t.Errorf("%d objects, want the one that came meanwhile", n)
		}
	})
}

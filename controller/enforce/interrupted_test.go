package enforce_test

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

// whole is that ConfigMap before it is deleted.
func whole(name string) string {
	return strings.Replace(heldMap(name, ""), ", deletionTimestamp: '2000-01-01T00:00:00Z'", "", 1)
}

// ownersOf are the names of an object's owners.
func ownersOf(c *clustertest.Cluster, key string) (names []string) {
	m, _ := c.API.Get(key)["metadata"].(map[string]any)
	list, _ := m["ownerReferences"].([]any)
	for _, o := range list {
		names = append(names, fmt.Sprint(o.(map[string]any)["name"]))
	}
	return names
}

// lost answers as a server whose answer is lost: what was asked for is done, or is not. Every later
// request is let through.
func lost(c *clustertest.Cluster, at string, done bool) (n func() int32) {
	var times atomic.Int32
	c.Reply(func(r apitest.Request) *apitest.Reply {
		method, path, _ := strings.Cut(at, " ")
		if r.Method != method || !strings.HasSuffix(r.Path, path) {
			return nil
		}
		if times.Add(1) > 1 {
			return nil
		}
		if done {
			c.Reply(nil)
			carryOut(c, r)
		}
		return apitest.Refuse(504, "Timeout", "the answer is lost")
	})
	return times.Load
}

// carryOut sends a request once more, for whoever hears no answer.
func carryOut(c *clustertest.Cluster, r apitest.Request) {
	req, err := http.NewRequestWithContext(c.Context(), r.Method, "http://api.test"+r.Path+"?"+r.Query, strings.NewReader(r.Body))
	if err != nil {
		c.Error(err)
		return
	}
	resp, err := c.API.RoundTrip(req)
	if err != nil {
		c.Error(err)
		return
	}
	_ = resp.Body.Close()
}

// TestADeletionGoesOnWhereTheProcessDied: after each request of a deletion whose pods are to be
// kept, and before each, the process ends without having heard an answer. The next one goes on; no
// pod is deleted, and no Secret kept.
func TestADeletionGoesOnWhereTheProcessDied(t *testing.T) {
	for _, companion := range []bool{true, false} {
		for _, at := range []string{"PATCH /pods/p", "PATCH /pods/q", "DELETE /configmaps/a", "DELETE /secrets/s", "PATCH /configmaps/a"} {
			for _, done := range []bool{true, false} {
				if (at == "DELETE /secrets/s") == companion {
					continue // the built-in collector deletes it; where Weir does, that needs no second DELETE of its owner
				}
				if at == "DELETE /configmaps/a" && !companion {
					continue
				}
				t.Run(fmt.Sprintf("%s, done=%t, companion=%t", at, done, companion), func(t *testing.T) {
					clustertest.Run(t, func(c *clustertest.Cluster) {
						c.Serve("v1", "secrets", "Secret", true, clustertest.AllVerbs)
						c.API.Put("deletionpolicies", policy("p", "propagation: {default: Foreground, dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}"))
						c.API.Put("configmaps", whole("a"))
						for _, o := range [][2]string{{"Pod", "p"}, {"Pod", "q"}, {"Secret", "s"}} {
							c.API.Put(strings.ToLower(o[0])+"s", owned(o[0], o[1], "a"))
						}
						c.Obey()
						c.Options.Companion = companion
						stop := c.Start()
						asked := lost(c, at, done)
						c.API.Put("configmaps", heldMap("a", ""))
						for range 1000 {
							if asked() > 0 {
								break
							}
							c.Pass(time.Millisecond)
						}
						stop()
						if asked() == 0 {
							t.Fatalf("nobody asked for %s", at)
						}
						c.Start()
						c.Pass(time.Minute)
						c.MustBeThere("pods/shop/p", "pods/shop/q")
						if left := append(ownersOf(c, "pods/shop/p"), ownersOf(c, "pods/shop/q")...); len(left) > 0 {
							t.Errorf("pods are still owned by %v", left)
						}
						held := fmt.Sprint(c.API.Get("configmaps/shop/a")["metadata"])
						switch {
						case companion && !strings.Contains(held, "foregroundDeletion"): // which is the built-in collector's to take off
							t.Errorf("the deletion has lost its propagation: %s", held)
						case companion && strings.Contains(held, "weir.dev/propagation"):
							t.Errorf("it is still held: %s", held)
						case !companion:
							c.MustBeGone("configmaps/shop/a", "secrets/shop/s")
						}
					})
				})
			}
		}
	}
}

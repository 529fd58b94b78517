package namespaces_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// The requests about a namespace that the API server may refuse, each in its turn.
var requestsOfADrain = map[string]func(apitest.Request) bool{
	"reading the namespace": func(r apitest.Request) bool { return r.Method == http.MethodGet && r.Path == "/api/v1/namespaces/shop" },
	"noting the wave": func(r apitest.Request) bool {
		return r.Method == http.MethodPatch && r.Path == "/api/v1/namespaces/shop"
	},
	"writing conditions": func(r apitest.Request) bool { return strings.HasSuffix(r.Path, "/namespaces/shop/status") },
	"deleting an object": func(r apitest.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.Path, "/shop/pods/")
	},
	"listing what is left": func(r apitest.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/shop/pods") && !strings.Contains(r.Query, "watch=")
	},
	"finalizing": func(r apitest.Request) bool { return strings.HasSuffix(r.Path, "/namespaces/shop/finalize") },
}

// What is said of requests without which a drain does not go on, and whose refusal no wave waits
// for.
var saidOf = map[string]string{
	"noting the wave": "note wave rest in namespace shop: ",
	"finalizing":      "finalize namespace shop: ",
}

// Whatever an API server refuses for three minutes, and how: no namespace goes without its proof,
// none is asked about all the time, and each goes within a minute or so of the end of that, without
// a user's help.
func TestRefusalOfAnyRequestDelaysADrainAndEndsNone(t *testing.T) {
	var asked atomic.Int32
	answers := map[string]func() *apitest.Reply{
		"forbidden": func() *apitest.Reply { return apitest.Refuse(403, "Forbidden", "not today") },
		"conflict":  func() *apitest.Reply { return apitest.Refuse(409, "Conflict", "it has changed") },
		"overload": func() *apitest.Reply {
			return &apitest.Reply{Code: 429, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "later", Details: &metav1.StatusDetails{RetryAfterSeconds: 1}}}
		},
		"error": func() *apitest.Reply { return apitest.Refuse(500, "InternalError", "no leader") },
		"somebody else answers": func() *apitest.Reply {
			return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
		},
	}
	for name, is := range requestsOfADrain {
		for how, answer := range answers {
			t.Run(name+"/"+how, func(t *testing.T) {
				clustertest.Run(t, func(c *clustertest.Cluster) {
					heldFirst(c)
					c.Start()
					var over atomic.Bool
					c.Reply(func(r apitest.Request) *apitest.Reply {
						switch {
						case !over.Load() && is(r) && how == "forbidden" && saidOf[name] != "": // as errors of connections do, each names the request
							return apitest.Refuse(403, "Forbidden", fmt.Sprintf("not today, request %d", asked.Add(1)))
						case !over.Load() && is(r):
							return answer()
						}
						return nil
					})
					c.End("shop")
					c.Pass(2 * time.Second)
					c.API.Remove("configmaps/shop/held")
					c.Asked("")
					c.Pass(3 * time.Minute)
					if told := saidOf[name]; told != "" && (how == "forbidden" || how == "error") {
						if got := c.Condition("shop", drain.Draining); !strings.HasPrefix(got, "True Failed: draining does not go on: "+told) {
							t.Errorf("the condition is %q", got)
						}
						if reported := c.Reported(events.ReasonWaveBlocked + ": draining does not go on: " + told); len(reported) < 1 || len(reported) > 3 { // one a minute
							t.Errorf("%d Events: %v", len(reported), c.Reported("shop"))
						}
					} else if reported := c.Reported("draining does not go on"); len(reported) > 0 && name == "writing conditions" {
						t.Errorf("it goes on, and is told of: %v", reported)
					}
					if name != "writing conditions" { // without them it may go
						c.MustBeThere("namespaces/shop")
					}
					n := 0
					for _, r := range c.Sent() {
						if is(r) {
							n++
						}
					}
					if n > 200 { // an overloaded server said itself how soon to come again
						t.Errorf("asked %d times in three minutes", n)
					}
					over.Store(true)
					c.Pass(70 * time.Second)
					c.MustBeGone("namespaces/shop", "pods/shop/p")
				})
			})
		}
	}
}

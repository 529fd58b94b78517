package namespaces_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// It cannot be known what is left of it, and its API says that it is not to be asked.
func TestKindThatSays405ToListsHoldsNoNamespace(t *testing.T) {
	for name, verbs := range map[string]metav1.Verbs{"never watched": {"delete", "deletecollection", "list"}, "watched": clustertest.AllVerbs} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.Serve("example.com/v1", "tokens", "Token", true, verbs)
				c.Found("shop", "first")
				c.Start()
				collections := 0
				c.Reply(func(r apitest.Request) *apitest.Reply {
					if !strings.HasSuffix(r.Path, "/namespaces/shop/tokens") {
						return nil
					}
					if r.Method == http.MethodDelete {
						collections++
						return &apitest.Reply{Code: 200, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}}
					}
					return apitest.Refuse(405, "MethodNotAllowed", "not for you to list")
				})
				c.End("shop")
				c.Pass(5 * time.Second)
				c.MustBeGone("namespaces/shop")
				if want := map[string]int{"never watched": 1}[name]; collections != want {
					t.Errorf("the collection was deleted %d times, want %d", collections, want)
				}
			})
		})
	}
}

// What the graph has seen stands: the object is there, whatever lists say.
func TestContentOfAWatchedKindThatSays405ToListsGoes(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "tokens", "Token", true, clustertest.AllVerbs)
		c.Found("shop", "first")
		c.Fill("example.com/v1", "tokens", "Token", "shop", "t")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/namespaces/shop/tokens") {
				return apitest.Refuse(405, "MethodNotAllowed", "not for you to list")
			}
			return nil
		})
		c.End("shop")
		c.Pass(5 * time.Second)
		c.MustBeGone("namespaces/shop", "tokens.example.com/shop/t")
	})
}

// What cannot be listed is there until an API has accepted its delete: no list shows otherwise.
func TestCollectionWhoseDeleteFailsHoldsTheNamespace(t *testing.T) {
	success := &apitest.Reply{Code: 200, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}}
	for name, answer := range map[string]*apitest.Reply{
		"403": apitest.Refuse(403, "Forbidden", "not today"),
		"404": apitest.Refuse(404, "NotFound", "not today"), // another serves the path: discovery has the kind
		"409": apitest.Refuse(409, "Conflict", "not today"),
		"429": {Code: 429, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "not today", Details: &metav1.StatusDetails{RetryAfterSeconds: 1}}},
		"503": apitest.Refuse(503, "ServiceUnavailable", "not today"),
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.Serve("example.com/v1", "tokens", "Token", true, metav1.Verbs{"delete", "deletecollection"})
				c.Found("shop", "first")
				c.Start()
				deletes := func(reply *apitest.Reply) {
					c.Reply(func(r apitest.Request) *apitest.Reply {
						if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/namespaces/shop/tokens") {
							return reply
						}
						return nil
					})
				}
				deletes(answer)
				c.End("shop")
				c.Pass(5 * time.Minute)
				c.MustBeThere("namespaces/shop")
				if got := c.Condition("shop", drain.Draining); !strings.Contains(got, "waiting for tokens.example.com, which cannot be listed: ") || !strings.Contains(got, "not today") {
					t.Errorf("the condition is %q", got)
				}
				deletes(success)
				c.Pass(70 * time.Second)
				c.MustBeGone("namespaces/shop")
			})
		})
	}
}

// An API that knows no delete of collections never will.
func TestCollectionThatCannotBeDeletedHoldsNoNamespace(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "tokens", "Token", true, metav1.Verbs{"delete", "deletecollection"})
		c.Found("shop", "first")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/namespaces/shop/tokens") {
				return apitest.Refuse(405, "MethodNotAllowed", "not for you to delete")
			}
			return nil
		})
		c.End("shop")
		c.Pass(5 * time.Second)
		c.MustBeGone("namespaces/shop")
	})
}

// The path of a kind that is not served any more answers 404, and discovery says why.
func TestCollectionOfAKindThatIsNotServedAnyMoreHoldsNoNamespace(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "tokens", "Token", true, metav1.Verbs{"delete", "deletecollection"})
		c.Found("shop", "first")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Path == "/apis/example.com/v1":
				return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
					GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{}}}
			case r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/namespaces/shop/tokens"):
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return nil
		})
		c.End("shop")
		c.Pass(10 * time.Second)
		c.MustBeGone("namespaces/shop")
	})
}

// A collection has no uid: the namespace's own is looked at right before.
func TestCollectionThatCannotBeListedIsDeletedOnlyInItsNamespace(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "tokens", "Token", true, metav1.Verbs{"delete", "deletecollection"})
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/configmaps/settings") {
				// A user takes the finalizer off, and makes the namespace again.
				c.API.Remove("namespaces/shop")
				c.Found("shop", "second")
			}
			return nil
		})
		c.End("shop")
		c.Asked("")
		c.Pass(time.Minute)
		if asked := c.Asked("DELETE /apis/example.com/v1/namespaces/shop/tokens"); len(asked) > 0 {
			t.Errorf("asked: %v", asked)
		}
		c.MustBeThere("namespaces/shop")
	})
}

package namespaces_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// Nothing can be made in an API to which no API server passes requests on. A 503 alone does not say
// that it is one: there may be a load balancer in front of several API servers.
func TestOnlyAnAPIThatIsNotAvailableHoldsNoNamespace(t *testing.T) {
	const service = "service: {namespace: kube-system, name: widgets}"
	for name, c := range map[string]struct {
		spec, condition string
		gone            bool
	}{
		"an aggregated API that is not available":          {service, "False", true},
		"an aggregated API that is available":              {service, "True", false},
		"an aggregated API of which it is not known":       {service, "Unknown", false},
		"kinds that the API server serves itself":          {"service: null", "False", false},
		"an API that no APIService is about, for all seen": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(cluster *clustertest.Cluster) {
				cluster.Serve("example.com/v1", "widgets", "Widget", true, clustertest.AllVerbs)
				if c.spec != "" {
					cluster.API.Put("apiservices", fmt.Sprintf("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.com}, "+
						"spec: {group: example.com, version: v1, %s}, status: {conditions: [{type: Available, status: %q}]}}", c.spec, c.condition))
				}
				cluster.Found("shop", "first")
				cluster.Start()
				cluster.Reply(func(r apitest.Request) *apitest.Reply {
					if strings.HasSuffix(r.Path, "/namespaces/shop/widgets") {
						return apitest.Refuse(503, "ServiceUnavailable", "nobody is there")
					}
					return nil
				})
				cluster.End("shop")
				cluster.Pass(5 * time.Minute)
				if c.gone {
					cluster.MustBeGone("namespaces/shop")
					return
				}
				cluster.MustBeThere("namespaces/shop")
				if got := cluster.Condition("shop", corev1.NamespaceDeletionContentFailure); !strings.Contains(got, "widgets.example.com cannot be listed") {
					t.Errorf("the condition is %q", got)
				}
				cluster.Reply(nil)
				cluster.Pass(30 * time.Second)
				cluster.MustBeGone("namespaces/shop")
			})
		})
	}
}

// What the graph has of an API that is not available counts if the watch ended with the API. If it
// broke before that, and the API went on answering, there may be objects that no watch has shown.
func TestAnAPIWhoseWatchBrokeBeforeItHoldsTheNamespace(t *testing.T) {
	const service = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.com}, " +
		"spec: {group: example.com, version: v1, service: {namespace: kube-system, name: widgets}}, status: {conditions: [{type: Available, status: %q}]}}"
	for name, c := range map[string]struct {
		answer *apitest.Reply // of watches, before it is down
		made   bool
	}{
		"the watch ends with it":                  {answer: apitest.Refuse(503, "ServiceUnavailable", "nobody is there")},
		"the watch fails for a reason of its own": {apitest.Refuse(500, "InternalError", "no watch today"), true},
		"the watch is not answered":               {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(cluster *clustertest.Cluster) {
				cluster.Serve("example.com/v1", "widgets", "Widget", true, clustertest.AllVerbs)
				cluster.API.Put("apiservices", fmt.Sprintf(service, "True"))
				cluster.Found("shop", "first")
				cluster.Start()
				about := func(r apitest.Request) bool { return strings.HasPrefix(r.Path, "/apis/example.com/v1/") }
				cluster.Reply(func(r apitest.Request) *apitest.Reply {
					if !about(r) {
						return nil
					}
					if c.answer == nil {
						<-time.After(time.Minute)
						return apitest.Refuse(504, "Timeout", "no answer")
					}
					return c.answer
				})
				cluster.API.Cut()
				cluster.Pass(10 * time.Second)
				if c.made {
					cluster.Fill("example.com/v1", "widgets", "Widget", "shop", "late")
				}
				cluster.API.Put("apiservices", fmt.Sprintf(service, "False"))
				cluster.Reply(func(r apitest.Request) *apitest.Reply {
					if about(r) {
						return apitest.Refuse(503, "ServiceUnavailable", "nobody is there")
					}
					return nil
				})
				cluster.End("shop")
				cluster.Pass(5 * time.Minute)
				if !c.made {
					cluster.MustBeGone("namespaces/shop")
					return
				}
				cluster.MustBeThere("namespaces/shop", "widgets.example.com/shop/late")
				if got := cluster.Condition("shop", corev1.NamespaceDeletionContentFailure); !strings.Contains(got, "widgets.example.com cannot be listed") {
					t.Errorf("the condition is %q", got)
				}
				cluster.Reply(nil)
				cluster.Pass(time.Minute)
				cluster.MustBeGone("namespaces/shop", "widgets.example.com/shop/late")
			})
		})
	}
}

// An API server that is restarted behind its load balancer.
func TestA503ForACoreKindHoldsTheNamespace(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/namespaces/shop/configmaps") {
				return apitest.Refuse(503, "ServiceUnavailable", "nobody is there")
			}
			return nil
		})
		c.End("shop")
		c.Pass(5 * time.Minute)
		c.MustBeThere("namespaces/shop")
	})
}

package namespaces_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// An API group whose kinds were never seen may hold anything.
func TestGroupThatDoesNotAnswerHoldsNamespacesAndIsNamed(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		c.Serve("metrics.example.com/v1", "samples", "Sample", true, clustertest.AllVerbs)
		c.Fill("metrics.example.com/v1", "samples", "Sample", "shop", "s")
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if strings.HasPrefix(r.Path, "/apis/metrics.example.com/v1") {
				return apitest.Refuse(503, "ServiceUnavailable", "nobody is there")
			}
			return nil
		})
		c.End("shop")
		c.Pass(5 * time.Minute)
		c.MustBeGone("configmaps/shop/settings") // what is known goes
		c.MustBeThere("namespaces/shop")
		for kind, want := range map[corev1.NamespaceConditionType]string{
			corev1.NamespaceDeletionDiscoveryFailure: "True DiscoveryFailed: Discovery failed for some groups, 1 failing: metrics.example.com/v1",
			drain.Draining:                           "True Waiting: API groups do not answer and may hold content: metrics.example.com/v1",
		} {
			if got := c.Condition("shop", kind); got != want {
				t.Errorf("the condition %s is %q, want %q", kind, got, want)
			}
		}
		c.Reply(nil)
		c.Pass(time.Minute)
		c.MustBeGone("samples.metrics.example.com/shop/s", "namespaces/shop")
	})
}

// Another controller's finalizer on the namespace itself: what is in it goes, and what the
// namespace says is true while it is held.
func TestNamespaceThatOthersHoldIsEmptiedAndSaysSo(t *testing.T) {
	for name, hold := range map[string]func(*corev1.Namespace){
		"by its metadata": func(ns *corev1.Namespace) { ns.Finalizers = []string{"example.com/theirs"} },
		"by its spec": func(ns *corev1.Namespace) {
			ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/theirs")
		},
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.Found("shop", "first")
				var ns corev1.Namespace
				c.Namespace("shop", &ns)
				hold(&ns)
				c.Put("namespaces", ns)
				c.Hold("shop", "held")
				c.Start()
				c.End("shop")
				c.Pass(3 * time.Second)
				if got, want := c.Condition("shop", corev1.NamespaceContentRemaining), "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances"; got != want {
					t.Errorf("the condition is %q, want %q", got, want)
				}
				c.API.Remove("configmaps/shop/held")
				c.Pass(time.Minute)
				c.MustBeThere("namespaces/shop")
				if got, want := c.Condition("shop", corev1.NamespaceContentRemaining), "False ContentRemoved: All content successfully removed"; got != want {
					t.Errorf("the condition is %q, want %q", got, want)
				}
				c.Namespace("shop", &ns)
				if fmt.Sprint(ns.Spec.Finalizers) == fmt.Sprint([]corev1.FinalizerName{corev1.FinalizerKubernetes}) {
					t.Error("Weir's own finalizer is still there")
				}
				c.Asked("")
				c.Pass(10 * time.Minute)
				for _, r := range c.Sent() {
					if strings.HasPrefix(r.Path, "/api/v1/namespaces/shop") && !strings.Contains(r.Query, "resourceVersionMatch=Exact") { // which is about watches
						t.Errorf("it is done, and asked: %s", r)
					}
				}
			})
		})
	}
}

// A client puts the finalizer back when Weir has taken it off, and content came meanwhile.
func TestFinalizerThatIsPutBackHasTheNamespaceEmptiedAgain(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		var ns corev1.Namespace
		c.Namespace("shop", &ns)
		ns.Finalizers = []string{"example.com/theirs"}
		c.Put("namespaces", ns)
		c.Start()
		c.End("shop")
		c.Pass(time.Minute)
		for round := range 3 {
			c.Namespace("shop", &ns)
			if len(ns.Spec.Finalizers) > 0 {
				t.Fatalf("round %d: the finalizers are %v", round, ns.Spec.Finalizers)
			}
			c.Fill("v1", "configmaps", "ConfigMap", "shop", "late")
			ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
			c.Put("namespaces", ns)
			c.Pass(time.Minute)
			c.MustBeGone("configmaps/shop/late")
		}
	})
}

// Each conflict is tried again at once, but not for ever: whoever writes all the time must not keep
// a worker.
func TestNamespaceThatChangesAllTheTimeIsLeftForAWhile(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/finalize") {
				return apitest.Refuse(409, "Conflict", "it has changed")
			}
			return nil
		})
		c.Asked("")
		c.End("shop")
		c.Pass(200 * time.Millisecond)
		if asked := c.Asked("/finalize"); len(asked) == 0 || len(asked) > 10 {
			t.Errorf("finalized %d times at once, want 1 to 10", len(asked))
		}
		c.Pass(2 * time.Minute)
		c.MustBeThere("namespaces/shop")
		if asked := c.Asked("/finalize"); len(asked) > 60 {
			t.Errorf("finalized %d times in two minutes", len(asked))
		}
	})
}

// No process would be left to finish.
func TestNamespaceThatWeirRunsInIsNotEmptied(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Options.Home = "weir-system"
		for _, name := range []string{"weir-system", "shop"} {
			c.Found(name, "")
			c.Fill("v1", "pods", "Pod", name, "p")
		}
		c.Start()
		c.End("weir-system")
		c.End("shop")
		c.Pass(time.Hour)
		c.MustBeThere("namespaces/weir-system", "pods/weir-system/p")
		c.MustBeGone("namespaces/shop")
		if got := c.Condition("weir-system", drain.Draining); !strings.HasPrefix(got, "True Waiting: nothing is deleted: Weir runs in this namespace") {
			t.Errorf("the condition is %q", got)
		}
	})
}

// Whoever may create pods chooses their finalizers. All of them in the namespace's conditions would
// be more than the API server stores.
func TestObjectWithManyFinalizersIsNamedInFewWords(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		pod := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		for i := range 2000 {
			pod.Finalizers = append(pod.Finalizers, fmt.Sprintf("%s.example.com/%04d", strings.Repeat("a", 240), i))
		}
		c.Put("pods", pod)
		c.Start()
		c.End("shop")
		c.Pass(time.Minute)
		var ns corev1.Namespace
		c.Namespace("shop", &ns)
		if n := ns.Size(); n > 16<<10 || len(ns.Status.Conditions) != 6 {
			t.Errorf("the namespace has %d conditions and %d bytes", len(ns.Status.Conditions), n)
		}
		if got := c.Condition("shop", drain.Draining); !strings.HasSuffix(got, ", and by 1997 more finalizers") {
			t.Errorf("the condition is %q", got)
		}
		for _, e := range c.Reported(events.ReasonWaveBlocked) {
			if len(e) > 1100 {
				t.Errorf("an Event of %d bytes", len(e))
			}
		}
	})
}

// A kind that cannot be watched is listed: what holds its objects counts as that of all others,
// also when others are deleted after the list.
func TestFinalizersOfAKindThatIsListedAreCounted(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "tokens", "Token", true, metav1.Verbs{"delete", "list"})
		c.Found("shop", "first")
		c.API.Put("tokens", "{apiVersion: example.com/v1, kind: Token, metadata: {namespace: shop, name: t, finalizers: [example.com/hold]}}")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "refused")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/configmaps/refused") {
				return apitest.Refuse(403, "Forbidden", "not today")
			}
			return nil
		})
		c.End("shop")
		for _, wait := range []time.Duration{3 * time.Second, time.Minute} {
			c.Pass(wait)
			if got, want := c.Condition("shop", corev1.NamespaceFinalizersRemaining), "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"; got != want {
				t.Errorf("after %s the condition is %q, want %q", wait, got, want)
			}
		}
		c.Reply(nil)
		c.API.Remove("tokens.example.com/shop/t")
		c.Pass(70 * time.Second)
		c.MustBeGone("namespaces/shop")
	})
}

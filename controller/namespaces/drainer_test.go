package namespaces_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/namespaces"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// once calls f at the first request that is one; the answer is the server's.
func once(is func(apitest.Request) bool, f func()) func(apitest.Request) *apitest.Reply {
	var first sync.Once
	return func(r apitest.Request) *apitest.Reply {
		if is(r) {
			first.Do(f)
		}
		return nil
	}
}

// The reference goes on with the rest while pods run (RB 7.13).
func TestARefusedPodHoldsUpTheRestAndIsNamed(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Fill("v1", "pods", "Pod", "shop", "kept", "other")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/pods/kept") {
				return apitest.Refuse(403, "Forbidden", `admission webhook "x.example.com" denied the request: not today`)
			}
			return nil
		})
		c.End("shop")
		c.Pass(10 * time.Minute)
		c.MustBeThere("namespaces/shop", "pods/shop/kept", "configmaps/shop/settings")
		c.MustBeGone("pods/shop/other")
		const want = `True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: pods: admission webhook "x.example.com" denied the request: not today`
		if diff := cmp.Diff(want, c.Condition("shop", corev1.NamespaceDeletionContentFailure)); diff != "" {
			t.Errorf("the condition (-want +have):\n%s", diff)
		}
		if reported := c.Reported(events.ReasonWaveBlocked); len(reported) != 1 || !strings.Contains(reported[0], "not today") {
			t.Errorf("Events: %v", reported)
		}
		c.Reply(nil)
		c.Pass(time.Minute)
		c.MustBeGone("namespaces/shop", "pods/shop/kept", "configmaps/shop/settings")
	})
}

func TestANewDrainerGoesOnWhereAnotherWasKilled(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Obey(configsFirst)
		c.Found("shop", "first")
		c.Hold("shop", "held")
		c.Fill("v1", "pods", "Pod", "shop", "p")
		for i := range 100 {
			c.Fill("v1", "configmaps", "ConfigMap", "shop", fmt.Sprintf("c-%d", i))
		}
		stop := c.Start()
		deletes := make(chan struct{})
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete {
				deletes <- struct{}{}
			}
			return nil
		})
		c.End("shop")
		for range 20 {
			<-deletes
		}
		killed := make(chan struct{})
		go func() { stop(); close(killed) }()
		synctest.Wait() // until it waits for what is under way
		for left := true; left; {
			select {
			case <-deletes:
			case <-killed:
				left = false
			}
		}
		c.Reply(nil)
		left := func() (n int) {
			for i := range 100 {
				if c.API.Get(fmt.Sprintf("configmaps/shop/c-%d", i)) != nil {
					n++
				}
			}
			return n
		}
		if n := left(); n == 0 || n == 100 {
			t.Fatalf("%d ConfigMaps are left of 100: it was not killed in the middle", n)
		}
		c.MustBeThere("pods/shop/p")
		c.Start()
		if n := left(); n > 0 {
			t.Errorf("%d ConfigMaps are left", n)
		}
		c.MustBeThere("pods/shop/p") // the wave is not over
		c.API.Remove("configmaps/shop/held")
		c.Pass(time.Minute)
		c.MustBeGone("pods/shop/p", "namespaces/shop")
	})
}

func TestAnotherNamespaceOfTheSameNameIsNotDrained(t *testing.T) {
	replaced := func(c *clustertest.Cluster) func() {
		return func() {
			c.API.Remove("namespaces/shop")
			c.API.Remove("configmaps/shop/settings")
			c.Found("shop", "second")
			c.API.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: another}}")
		}
	}
	for name, is := range map[string]func(apitest.Request) bool{
		"before an object is deleted": func(r apitest.Request) bool {
			return r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/configmaps/settings")
		},
		"before the proof": func(r apitest.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/shop/configmaps") && !strings.Contains(r.Query, "watch=")
		},
		"before it is finalized": func(r apitest.Request) bool { return strings.HasSuffix(r.Path, "/finalize") },
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.Found("shop", "first")
				c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
				c.Start()
				c.Reply(once(is, replaced(c)))
				c.End("shop")
				c.Pass(5 * time.Minute)
				c.MustBeThere("namespaces/shop", "configmaps/shop/settings")
				var ns corev1.Namespace
				if c.Namespace("shop", &ns); ns.UID != "second" || len(ns.Spec.Finalizers) != 1 {
					t.Errorf("the namespace is %s with finalizers %v", ns.UID, ns.Spec.Finalizers)
				}
			})
		})
	}
}

// foundTwoPieces makes a namespace whose content is chosen in two pieces: the Secret is the second.
func foundTwoPieces(c *clustertest.Cluster) {
	c.Serve("v1", "secrets", "Secret", true, clustertest.AllVerbs)
	c.Found("shop", "first")
	for i := range namespaces.MostChosen {
		c.Fill("v1", "configmaps", "ConfigMap", "shop", fmt.Sprintf("c-%d", i))
	}
	c.Fill("v1", "secrets", "Secret", "shop", "s")
}

// TestAnotherNamespaceIsNotHitByTheSecondPiece of what is deleted: more objects are there than are
// chosen at a time, and the namespace is another one by the time the rest is chosen. Requests with
// the uids of the first one's objects hit nothing of the second.
func TestAnotherNamespaceIsNotHitByTheSecondPiece(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		foundTwoPieces(c)
		c.Start()
		var exchanged atomic.Bool
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method != http.MethodDelete || exchanged.Swap(true) {
				return nil
			}
			c.API.Remove("namespaces/shop")
			c.API.Remove("secrets/shop/s")
			c.Found("shop", "second")
			c.API.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: s, uid: another}}")
			<-time.After(time.Second) // the graph has it
			return nil
		})
		c.Asked("")
		c.End("shop")
		c.Pass(5 * time.Minute)
		if n := len(c.Asked("DELETE")); n != namespaces.MostChosen {
			t.Errorf("%d deletes, want the %d that were chosen when the namespace was the first one", n, namespaces.MostChosen)
		}
		c.MustBeThere("namespaces/shop", "secrets/shop/s")
	})
}

// TestOneSlowDeleteHoldsUpNoOther, be it one of more objects than are chosen at a time.
func TestOneSlowDeleteHoldsUpNoOther(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		foundTwoPieces(c)
		c.Start()
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/configmaps/c-7") {
				<-time.After(20 * time.Second)
			}
			return nil
		})
		c.End("shop")
		<-time.After(10 * time.Second)
		c.MustBeThere("namespaces/shop", "configmaps/shop/c-7")
		c.MustBeGone("secrets/shop/s", "configmaps/shop/c-8")
		c.Pass(time.Minute)
		c.MustBeGone("namespaces/shop")
	})
}

// TestAnotherNamespaceIsNotHitByWhatWasListed: a kind that cannot be watched is listed live, and by
// then the namespace may be another one.
func TestAnotherNamespaceIsNotHitByWhatWasListed(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Serve("example.com/v1", "tokens", "Token", true, metav1.Verbs{"delete", "get", "list"})
		c.Found("shop", "first")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "settings")
		c.Start()
		listed := false
		c.Reply(once(func(r apitest.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/shop/tokens")
		}, func() {
			listed = true
			c.API.Remove("namespaces/shop")
			c.Found("shop", "second")
			c.Fill("example.com/v1", "tokens", "Token", "shop", "t")
		}))
		c.End("shop")
		c.Pass(5 * time.Minute)
		if !listed {
			t.Fatal("nothing was listed live")
		}
		c.MustBeThere("namespaces/shop", "tokens.example.com/shop/t")
	})
}

func TestAConflictAtTheEndIsTriedAgainOnWhatIsThere(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		c.Reply(once(func(r apitest.Request) bool { return strings.HasSuffix(r.Path, "/finalize") }, func() {
			var ns corev1.Namespace
			c.Namespace("shop", &ns)
			ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/theirs")
			c.Put("namespaces", ns)
		}))
		c.End("shop")
		c.Pass(time.Minute)
		var ns corev1.Namespace
		if !c.Namespace("shop", &ns) {
			t.Fatal("the namespace went, though somebody else holds it")
		}
		if diff := cmp.Diff([]corev1.FinalizerName{"example.com/theirs"}, ns.Spec.Finalizers); diff != "" {
			t.Errorf("finalizers (-want +have):\n%s", diff)
		}
	})
}

func TestAListThatIsThrottledProvesNothing(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Start()
		until := time.Now().Add(2 * time.Minute)
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/shop/configmaps") && time.Now().Before(until) {
				return &apitest.Reply{Code: 429, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
					Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "too many requests", Details: &metav1.StatusDetails{RetryAfterSeconds: 1}}}
			}
			return nil
		})
		c.Asked("")
		c.End("shop")
		<-time.After(time.Until(until) - time.Millisecond)
		c.MustBeThere("namespaces/shop")
		if n := len(c.Asked("GET /api/v1/namespaces/shop/configmaps")); n == 0 || n > 30 {
			t.Errorf("%d lists in two minutes, want at most 30", n)
		}
		c.Pass(2 * time.Minute)
		c.MustBeGone("namespaces/shop")
	})
}

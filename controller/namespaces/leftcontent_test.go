package namespaces_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// TestRefusedObjectIsNotAskedAboutWithEachThatGoes: pods stop one after the other, and with each
// the namespace is looked at again. Who refuses one of them is not asked each time.
func TestRefusedObjectIsNotAskedAboutWithEachThatGoes(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		const n = 200
		c.Found("shop", "first")
		c.Fill("v1", "pods", "Pod", "shop", "refused")
		for i := range n {
			c.API.Put("pods", fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: p%d, finalizers: [example.com/stops]}}", i))
		}
		c.Start()
		var asked atomic.Int32
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/pods/refused") {
				asked.Add(1)
				return apitest.Refuse(403, "Forbidden", `admission webhook "x.example.com" denied the request: not today`)
			}
			return nil
		})
		c.End("shop")
		c.Pass(time.Second)
		for i := range n {
			c.API.Remove(fmt.Sprint("pods/shop/p", i))
			c.Pass(100 * time.Millisecond)
		}
		if asked.Load() > 30 {
			t.Errorf("asked %d times within 21 s", asked.Load())
		}
		c.MustBeThere("pods/shop/refused", "namespaces/shop")
		c.Reply(nil)
		c.Pass(time.Minute)
		c.MustBeGone("pods/shop/refused", "namespaces/shop")
	})
}

// says are conditions of a namespace.
func says(c *clustertest.Cluster, name string, types ...corev1.NamespaceConditionType) (all []string) {
	for _, t := range types {
		all = append(all, c.Condition(name, t))
	}
	return all
}

// TestKindWhoseObjectsCannotBeDeletedHoldsOnlyItsNamespace: discovery says that they can be, and
// the API does not know how. All else goes, the namespace says what is left and what the API says,
// and another namespace without such an object is not held.
func TestKindWhoseObjectsCannotBeDeletedHoldsOnlyItsNamespace(t *testing.T) {
	for name, answer := range map[string]*apitest.Reply{
		"it knows no deletes":        apitest.Refuse(405, "MethodNotAllowed", "delete is not for widgets"),
		"it may not be":              apitest.Refuse(403, "Forbidden", "delete is not for widgets"),
		"another server answers":     apitest.Refuse(404, "NotFound", "delete is not for widgets"),
		"it has broken down":         apitest.Refuse(503, "ServiceUnavailable", "delete is not for widgets"),
		"it says that it is invalid": apitest.Refuse(422, "Invalid", "delete is not for widgets"),
	} {
		t.Run(name, func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.Serve("example.com/v1", "widgets", "Widget", true, clustertest.AllVerbs)
				for _, ns := range []string{"shop", "other"} {
					c.Found(ns, "")
					c.Fill("v1", "configmaps", "ConfigMap", ns, "of-"+ns) // whose uid is that of its name
				}
				c.Fill("example.com/v1", "widgets", "Widget", "shop", "w")
				c.Start()
				c.Reply(func(r apitest.Request) *apitest.Reply {
					if r.Method == http.MethodDelete && strings.Contains(r.Path, "/widgets/") {
						return answer
					}
					return nil
				})
				c.End("shop")
				c.End("other")
				c.Pass(3 * time.Minute)
				c.MustBeGone("namespaces/other", "configmaps/shop/of-shop")
				c.MustBeThere("namespaces/shop", "widgets.example.com/shop/w")
				got := says(c, "shop", corev1.NamespaceContentRemaining, corev1.NamespaceFinalizersRemaining, drain.Draining)
				if name != "another server answers" { // which says nothing of the object, and the next look finds it
					got = append(got, says(c, "shop", corev1.NamespaceDeletionContentFailure)...)
				}
				for i, want := range []string{"True SomeResourcesRemain: Some resources are remaining: widgets.example.com has 1 resource instances",
					"False ContentHasNoFinalizers: ", "True Waiting: wave 2 of 2 (rest): waiting for 1 widgets.example.com",
					"True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: widgets.example.com: "}[:len(got)] {
					if !strings.HasPrefix(got[i], want) {
						t.Errorf("the condition is %q, want %q", got[i], want)
					}
				}
				c.Reply(nil)
				c.Pass(70 * time.Second)
				c.MustBeGone("namespaces/shop", "widgets.example.com/shop/w")
			})
		})
	}
}

// TestConditionsFollowFinalizersThatComeOffOneByOne, and content that comes meanwhile: who waits
// for a namespace reads what it waits for now.
func TestConditionsFollowFinalizersThatComeOffOneByOne(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		held := func(name, finalizers string) {
			c.API.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: %s, finalizers: [%s]%s}}", name, finalizers,
				map[bool]string{true: ", deletionTimestamp: '2000-01-01T00:00:00Z'"}[terminates(c, "configmaps/shop/"+name)]))
		}
		c.Found("shop", "first")
		held("a", "example.com/one, example.com/two")
		held("b", "example.com/one")
		c.Start()
		c.End("shop")
		for _, step := range []struct {
			what      string
			do        func()
			resources int
			want      string // finalizers
		}{
			{"at first", func() {}, 2, "example.com/one in 2 resource instances, example.com/two in 1 resource instances"},
			{"one comes off", func() { held("a", "example.com/two") }, 2, "example.com/one in 1 resource instances, example.com/two in 1 resource instances"},
			{"one comes with what is made late", func() { held("c", "example.com/late") }, 3,
				"example.com/late in 1 resource instances, example.com/one in 1 resource instances, example.com/two in 1 resource instances"},
			{"two objects go", func() { c.API.Remove("configmaps/shop/a"); c.API.Remove("configmaps/shop/c") }, 1, "example.com/one in 1 resource instances"},
		} {
			step.do()
			c.Pass(3 * time.Second)
			want := []string{
				fmt.Sprintf("True SomeResourcesRemain: Some resources are remaining: configmaps. has %d resource instances", step.resources),
				"True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: " + step.want,
			}
			if diff := cmp.Diff(want, says(c, "shop", corev1.NamespaceContentRemaining, corev1.NamespaceFinalizersRemaining)); diff != "" {
				t.Errorf("%s: (-want +have):\n%s", step.what, diff)
			}
		}
		if !terminates(c, "configmaps/shop/b") {
			t.Error("it was not deleted")
		}
		c.API.Remove("configmaps/shop/b")
		c.Pass(time.Minute)
		c.MustBeGone("namespaces/shop")
	})
}

// The watch never says that it went: the list of each kind in an hour does.
func TestAnObjectThatWentUnseenHoldsItsNamespaceUntilItsKindIsListed(t *testing.T) {
	clustertest.Run(t, func(c *clustertest.Cluster) {
		c.Found("shop", "first")
		c.Hold("shop", "ghost")
		c.Start()
		c.End("shop")
		c.Pass(10 * time.Second)
		c.API.Forget("configmaps/shop/ghost")
		c.Pass(2 * time.Second)
		c.MustBeThere("namespaces/shop")
		c.Pass(time.Hour + time.Minute)
		c.MustBeGone("namespaces/shop")
	})
}

package undo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/clustertest"
)

// archiving is a policy that records ConfigMaps.
func archiving(more string) string {
	return "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: undo, generation: 1}, spec: " +
		"{match: {resources: [{apiGroups: [''], resources: [configmaps]}]}, archive: {retentionSeconds: 900}" + more + "}}"
}

func configMap(name, more string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, finalizers: [weir.dev/propagation]%s}}", name, more)
}

const terminating = ", deletionTimestamp: '2000-01-01T00:00:00Z'"

func ownedPod(name, owner string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop, ownerReferences: "+
		"[{apiVersion: v1, kind: ConfigMap, name: %s, uid: uid-%s}]}}", name, owner, owner)
}

// recorded runs a test in both modes. ConfigMap a owns two pods, and a policy records it.
func recorded(t *testing.T, more string, test func(c *clustertest.Cluster)) {
	for _, companion := range []bool{false, true} {
		t.Run(fmt.Sprintf("companion=%t", companion), func(t *testing.T) {
			clustertest.Run(t, func(c *clustertest.Cluster) {
				c.API.Put("deletionpolicies", archiving(more))
				c.API.Put("configmaps", configMap("a", ""))
				c.API.Put("pods", ownedPod("p", "a"))
				c.API.Put("pods", ownedPod("q", "a"))
				c.Obey()
				c.Options.Companion, c.Options.Canary, c.Options.CanaryStands = companion, "weir-system", 100*time.Millisecond
				test(c)
			})
		})
	}
}

func store(c *clustertest.Cluster) *archive.Store {
	client, err := dynamic.NewForConfig(c.API.Config())
	if err != nil {
		c.Fatal(err)
	}
	return archive.NewStore(client, "weir-system")
}

// kept returns the trees that are durable, with each object in its last state, which is what a
// restore makes. An object that changes while it is recorded is in its tree more than once.
func kept(c *clustertest.Cluster) (out []string) {
	c.Helper()
	s := store(c)
	all, err := s.List(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	for _, tree := range all {
		if !archive.Durable(&tree) {
			continue
		}
		text, last := tree.Spec.Root.Name+":", map[string]string{}
		for o, err := range s.Read(c.Context(), tree.Name) {
			if err != nil {
				c.Fatal(err)
			}
			var m metav1.PartialObjectMetadata
			if err := json.Unmarshal(o.Raw, &m); err != nil {
				c.Fatal(err)
			}
			last[m.Kind+"/"+m.Name] = m.Labels["is"]
		}
		for _, object := range slices.Sorted(maps.Keys(last)) {
			text += " " + object + last[object]
		}
		for _, missed := range tree.Status.Missed {
			text += " missed " + missed.Object
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func wantKept(c *clustertest.Cluster, want ...string) {
	c.Helper()
	if diff := cmp.Diff(want, kept(c)); diff != "" {
		c.Errorf("trees (-want +got):\n%s", diff)
	}
}

func TestWhatIsDeletedIsRecordedBeforeItGoes(t *testing.T) {
	recorded(t, "", func(c *clustertest.Cluster) {
		c.Start()
		c.API.Put("configmaps", configMap("a", terminating))
		c.Pass(time.Minute)
		wantKept(c, "a: ConfigMap/a Pod/p Pod/q")
		c.MustBeGone("configmaps/shop/a")
		if !c.Options.Companion {
			c.MustBeGone("pods/shop/p", "pods/shop/q")
		}
		c.Pass(20 * time.Minute)
		if got := kept(c); len(got) > 0 {
			c.Errorf("kept after its time: %q", got)
		}
	})
}

// refuse has the API server refuse writes of chunks, and purges, while down.
func refuse(c *clustertest.Cluster, down *atomic.Bool) {
	c.Reply(func(r apitest.Request) *apitest.Reply {
		if down.Load() && (r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/archivechunks") ||
			r.Method == http.MethodDelete && strings.Contains(r.Path, "/deletedtrees/")) {
			return &apitest.Reply{Code: 500, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError, Message: "etcd is full"}}
		}
		return nil
	})
}

func TestWhatCannotBeRecordedIsHeldWithFail(t *testing.T) {
	recorded(t, ", failurePolicy: Fail", func(c *clustertest.Cluster) {
		var down atomic.Bool
		down.Store(true)
		refuse(c, &down)
		c.Start()
		c.API.Put("configmaps", configMap("a", terminating))
		c.Pass(2 * time.Minute)
		c.MustBeThere("configmaps/shop/a", "pods/shop/p", "pods/shop/q")
		if told := c.Reported("DeletionHeld"); len(told) != 1 || !strings.Contains(told[0], "cannot be recorded") || !strings.Contains(told[0], "etcd is full") {
			c.Errorf("%q", told)
		}
		down.Store(false)
		c.Pass(time.Minute)
		wantKept(c, "a: ConfigMap/a Pod/p Pod/q")
		c.MustBeGone("configmaps/shop/a")
	})
}

func TestWhatCannotBeRecordedGoesWithIgnore(t *testing.T) {
	recorded(t, "", func(c *clustertest.Cluster) {
		var down atomic.Bool
		down.Store(true)
		refuse(c, &down)
		c.Start()
		c.API.Put("configmaps", configMap("a", terminating))
		c.Pass(time.Minute)
		c.MustBeGone("configmaps/shop/a")
		if told := c.Reported("NotRecorded"); len(told) != 1 || !strings.Contains(told[0], "etcd is full") {
			c.Errorf("%q", told)
		}
	})
}

// TestAFullArchive: no DELETE waits for it, since the object terminates at once. The failurePolicy
// decides what becomes of the object then.
func TestAFullArchive(t *testing.T) {
	for more, want := range map[string]string{"": "NotRecorded", ", failurePolicy: Fail": "DeletionHeld"} {
		recorded(t, more, func(c *clustertest.Cluster) {
			c.Options.ArchiveBytes = 10
			c.Start()
			c.API.Put("configmaps", configMap("a", terminating))
			c.Pass(time.Minute)
			if told := c.Reported(want); len(told) != 1 || !strings.Contains(told[0], "the archive is full") {
				c.Errorf("%q", told)
			}
			if there := c.API.Get("configmaps/shop/a") != nil; there != (want == "DeletionHeld") {
				c.Errorf("%s: the object is there: %t", want, there)
			}
		})
	}
}

// TestOfAKindThatIsNotListedNothingIsMissedUnsaid: there may be dependents of that kind.
func TestOfAKindThatIsNotListedNothingIsMissedUnsaid(t *testing.T) {
	for _, more := range []string{"", ", failurePolicy: Fail"} {
		recorded(t, more, func(c *clustertest.Cluster) {
			c.Serve("example.com/v1", "widgets", "Widget", true, clustertest.AllVerbs)
			var down atomic.Bool
			down.Store(true)
			c.Reply(func(r apitest.Request) *apitest.Reply {
				if down.Load() && strings.HasSuffix(r.Path, "/widgets") {
					return &apitest.Reply{Code: 500, Body: metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
						Status: metav1.StatusFailure, Code: 500, Message: "broken"}}
				}
				return nil
			})
			c.Start()
			c.API.Put("configmaps", configMap("a", terminating))
			c.Pass(time.Minute)
			if more == "" {
				wantKept(c, "a: ConfigMap/a Pod/p Pod/q missed configmaps shop/a")
				return
			}
			c.MustBeThere("configmaps/shop/a", "pods/shop/p")
			if told := c.Reported("DeletionHeld"); len(told) == 0 || !strings.Contains(told[0], "not all kinds are listed: widgets.example.com") {
				c.Errorf("%q", told)
			}
			down.Store(false)
			c.Pass(5 * time.Minute)
			wantKept(c, "a: ConfigMap/a Pod/p Pod/q")
		})
	}
}

// TestALeaderThatEndsLeavesNothingUnrecorded: it is killed while it writes. The next one records
// all of it, and purges what the first has left.
func TestALeaderThatEndsLeavesNothingUnrecorded(t *testing.T) {
	recorded(t, ", failurePolicy: Fail", func(c *clustertest.Cluster) {
		var down atomic.Bool
		down.Store(true)
		refuse(c, &down)
		stop := c.Start()
		c.API.Put("configmaps", configMap("a", terminating))
		c.Pass(time.Second)
		stop()
		down.Store(false)
		c.MustBeThere("configmaps/shop/a", "pods/shop/p", "pods/shop/q")
		c.Start()
		c.Pass(2 * time.Minute)
		wantKept(c, "a: ConfigMap/a Pod/p Pod/q")
		c.MustBeGone("configmaps/shop/a")
		if all, err := store(c).List(c.Context()); err != nil || len(all) != 1 {
			c.Errorf("%d trees, %v", len(all), err)
		}
	})
}

// TestWhatChangesIsReadAgain: a pod is edited after it was read, and the record ends with what it is.
func TestWhatChangesIsReadAgain(t *testing.T) {
	recorded(t, "", func(c *clustertest.Cluster) {
		var edited atomic.Bool // the edit comes after p was read
		c.Reply(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/pods/q") && edited.CompareAndSwap(false, true) {
				c.API.Put("pods", strings.Replace(ownedPod("p", "a"), "name: p,", "name: p, labels: {is: ' edited'},", 1))
				<-time.After(time.Second) // the watch shows it
			}
			return nil
		})
		c.Start()
		c.API.Put("configmaps", configMap("a", terminating))
		c.Pass(time.Minute)
		wantKept(c, "a: ConfigMap/a Pod/p edited Pod/q")
	})
}

// namespaced runs a test in both modes. Namespace shop holds two ConfigMaps, one of which Weir's
// finalizer holds, and a pod; a policy records it.
func namespaced(t *testing.T, more string, test func(c *clustertest.Cluster)) {
	recorded(t, more, func(c *clustertest.Cluster) {
		c.API.Put("deletionpolicies", strings.Replace(archiving(more), "[configmaps]", "[configmaps, namespaces]", 1))
		c.Found("shop", "uid-shop")
		c.Fill("v1", "configmaps", "ConfigMap", "shop", "kube-root-ca.crt")
		c.Start()
		test(c)
	})
}

const shop = "shop: ConfigMap/a ConfigMap/kube-root-ca.crt Namespace/shop Pod/p Pod/q"

// TestANamespaceIsRecordedWithAllThatIsInIt, once: its content is not recorded again as it goes.
func TestANamespaceIsRecordedWithAllThatIsInIt(t *testing.T) {
	namespaced(t, "", func(c *clustertest.Cluster) {
		c.End("shop")
		c.Pass(2 * time.Minute)
		wantKept(c, shop)
		c.MustBeGone("configmaps/shop/a", "configmaps/shop/kube-root-ca.crt", "pods/shop/p", "pods/shop/q")
		if !c.Options.Companion {
			c.MustBeGone("namespaces/shop")
		}
	})
}

func TestNothingGoesOfANamespaceThatCannotBeRecordedWithFail(t *testing.T) {
	namespaced(t, ", failurePolicy: Fail", func(c *clustertest.Cluster) {
		var down atomic.Bool
		down.Store(true)
		refuse(c, &down)
		c.End("shop")
		c.Pass(2 * time.Minute)
		c.MustBeThere("configmaps/shop/a", "configmaps/shop/kube-root-ca.crt", "pods/shop/p", "pods/shop/q")
		if said := c.Condition("shop", drain.Draining); !strings.Contains(said, "cannot be recorded") || !strings.Contains(said, "etcd is full") {
			c.Errorf("the namespace says %q", said)
		}
		down.Store(false)
		c.Pass(5 * time.Minute)
		wantKept(c, shop)
		c.MustBeGone("configmaps/shop/a", "pods/shop/p")
	})
}

func TestANamespaceThatCannotBeRecordedGoesWithIgnore(t *testing.T) {
	namespaced(t, "", func(c *clustertest.Cluster) {
		var down atomic.Bool
		down.Store(true)
		refuse(c, &down)
		c.End("shop")
		c.Pass(2 * time.Minute)
		c.MustBeGone("configmaps/shop/a", "pods/shop/p")
		if told := c.Reported("shop NotRecorded"); len(told) != 1 || !strings.Contains(told[0], "etcd is full") {
			c.Errorf("%q", told)
		}
	})
}

// TestTheNextLeaderKnowsWhatIsRecorded: nothing of a namespace that is half gone is recorded again.
func TestTheNextLeaderKnowsWhatIsRecorded(t *testing.T) {
	recorded(t, ", failurePolicy: Fail", func(c *clustertest.Cluster) {
		c.API.Put("deletionpolicies", strings.Replace(archiving(""), "[configmaps]", "[configmaps, namespaces]", 1))
		c.Found("shop", "uid-shop")
		c.Hold("shop", "held")
		stop := c.Start()
		c.End("shop")
		c.Pass(time.Minute)
		want := "shop: ConfigMap/a ConfigMap/held Namespace/shop Pod/p Pod/q"
		wantKept(c, want)
		stop()
		c.API.Put("configmaps", configMap("b", terminating)) // its deletion had begun
		c.Start()
		c.Pass(time.Minute)
		c.API.Remove("configmaps/shop/held")
		c.Pass(time.Minute)
		wantKept(c, "b: ConfigMap/b", want)
		c.MustBeGone("configmaps/shop/a", "configmaps/shop/b")
	})
}

// TestATreeThatSaysThatItIsWholeIsNotBelieved: users who may write DeletedTrees cannot have an
// object go unrecorded.
func TestATreeThatSaysThatItIsWholeIsNotBelieved(t *testing.T) {
	recorded(t, ", failurePolicy: Fail", func(c *clustertest.Cluster) {
		c.API.Put("deletedtrees", `{apiVersion: weir.dev/v1beta1, kind: DeletedTree, metadata: {name: forged, uid: uid-forged}, spec: {key: AAAA,
			root: {version: v1, resource: configmaps, kind: ConfigMap, namespace: shop, name: a, uid: uid-a}},
			status: {chunks: 1, objects: 1, bytes: 1, conditions: [{type: Durable, status: "True", reason: Recorded}]}}`)
		c.Start()
		c.API.Put("configmaps", configMap("a", terminating))
		c.Pass(time.Minute)
		c.API.Remove("deletedtrees.weir.dev/forged")
		wantKept(c, "a: ConfigMap/a Pod/p Pod/q")
	})
}

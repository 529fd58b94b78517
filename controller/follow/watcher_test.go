package follow

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

var widgetKind = schema.GroupResource{Group: "example.com", Resource: "widgets"}

func (e *watching) widget(name string) {
	e.api.Put("widgets", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: "+name+
		", namespace: shop, uid: uid-"+name+"}}")
}

func (e *watching) version(kind schema.GroupResource) string {
	e.watcher.mu.Lock()
	defer e.watcher.mu.Unlock()
	if k := e.watcher.running[kind]; k != nil && !k.leaving {
		return k.gvr.Version
	}
	return ""
}

func TestKindIsWatchedInTheVersionThatIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.widget("one")
		e.whole()
		e.serve("widgets.example.com", "Widget v2")
		e.until(discoveryPeriod+time.Second, "v2 is watched", func() bool { return e.version(widgetKind) == "v2" })
		e.until(5*time.Second, "it is listed", func() bool {
			k := e.kind("widgets.example.com")
			return k.State == graph.Synced && k.Objects == 1
		})
	})
}

func TestKindThatVanishesIsFollowedForAnotherMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.widget("one")
		e.widget("two")
		e.whole()
		e.serve("widgets.example.com", "")
		e.watcher.ask()
		e.pass(grace / 2)
		e.api.Remove("widgets.example.com/shop/one") // its last deletions are on their way
		e.until(grace, "the deletion is seen", func() bool { return e.kind("widgets.example.com").Objects == 1 })
		e.until(grace, "it is not watched any more", func() bool {
			return e.kind("widgets.example.com").State == graph.Unwatched
		})
		e.pass(time.Minute)
		if e.version(widgetKind) != "" || e.kind("widgets.example.com").Objects != 0 {
			t.Errorf("still watched: %+v", e.kind("widgets.example.com"))
		}
	})
}

// There is other storage behind a CRD of the same name, although discovery never showed that it was
// gone.
func TestDeletedCRDEndsItsWatchEvenIfItIsBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.serve("customresourcedefinitions.apiextensions.k8s.io", "CustomResourceDefinition v1")
		e.api.Put("customresourcedefinitions",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}}")
		e.widget("one")
		e.whole()
		e.untilState(5*time.Second, kinds.Definitions.String(), graph.Synced)
		lists := e.listsOf("widgets")
		e.api.Remove("customresourcedefinitions.apiextensions.k8s.io/widgets.example.com")
		e.api.Put("customresourcedefinitions",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}}")
		e.until(grace+5*time.Second, "the kind is listed anew", func() bool {
			return e.listsOf("widgets") > lists && e.kind("widgets.example.com").State == graph.Synced
		})
		if n := e.kind("widgets.example.com").Objects; n != 1 {
			t.Errorf("%d objects, want 1", n)
		}
	})
}

// Whatever is under way when it stops, nothing is left of it: the end of each test says so, for the
// bubble waits until all goroutines have ended.
func TestStopJoinsAll(t *testing.T) {
	for name, breakIt := range map[string]func(*watching){
		"at rest": func(*watching) {},
		"while nobody is there": func(e *watching) {
			e.api.Down()
			e.pass(3 * time.Second)
		},
		"while a kind leaves": func(e *watching) {
			e.serve("widgets.example.com", "")
			e.watcher.ask()
			e.pass(grace / 2)
		},
		"while a kind may not be listed": func(e *watching) {
			e.fail(refusing("configmaps", apitest.Refuse(403, "Forbidden", "no")))
			e.api.Cut()
			e.pass(3 * time.Second)
		},
		"while the history goes back": func(e *watching) {
			restore := e.api.Snapshot()
			e.configMap("late", "")
			e.pass(5 * time.Second)
			e.api.Down()
			restore(0)
			e.api.Up()
			e.until(10*time.Second, "it is noticed", func() bool { return len(e.back()) > 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.whole()
				breakIt(e)
			})
		})
	}
}

// What is being told of the old history comes before the graph forgets it, not after.
func TestOldWatchesHaveEndedWhenTheGraphForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		hold := make(chan struct{})
		e.watcher.Listen(Listener{Terminating: func(*metav1.PartialObjectMetadata) { <-hold }})
		e.whole()
		e.configMap("going", ", deletionTimestamp: '2000-01-01T00:00:00Z'")
		synctest.Wait() // the reflector is in the middle of it
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.watcher.rewind(e.Context(), "test")
		}()
		e.pass(time.Second)
		e.store.Read(func(g *graph.Graph) {
			if g.History() != 0 {
				t.Error("the graph has forgotten while a watch is told of")
			}
		})
		close(hold)
		<-done
		e.until(5*time.Second, "all is listed anew", func() bool {
			return e.store.Stats().Rewound == "" && e.kind("configmaps").Objects == 1
		})
	})
}

func TestThoseWhoAskAreToldOfEachObjectByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		var told []string
		e.watcher.Listen(Listener{Namespace: func(name string, how Change) {
			e.mu.Lock()
			defer e.mu.Unlock()
			told = append(told, name+" "+[]string{There: "there", Deleting: "deleting", Went: "went"}[how])
		}})
		e.whole()
		e.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: late}}")
		e.api.Put("namespaces",
			"{apiVersion: v1, kind: Namespace, metadata: {name: late, deletionTimestamp: '2000-01-01T00:00:00Z'}}")
		e.api.Remove("namespaces/late")
		e.pass(time.Second)
		e.mu.Lock()
		defer e.mu.Unlock()
		if want := []string{"shop there", "late there", "late deleting", "late went"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

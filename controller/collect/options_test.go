package collect

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// watchers are a Brake and a Shadow of a test.
type watchers struct {
	mu      sync.Mutex
	allows  func(a graph.Action) (bool, time.Duration)
	decided []string
	deleted []string
}

func (w *watchers) Allows(a graph.Action) (bool, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.allows(a)
}

func (w *watchers) Deleted(a graph.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted = append(w.deleted, a.Object.Name)
}

func (w *watchers) Decided(_ types.UID, a graph.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if what := a.Verb.String() + " " + a.Object.Name; a.Request() && !slices.Contains(w.decided, what) {
		w.decided = append(w.decided, what)
	}
}

// sent are the requests about objects, in short, each once.
func (e *edge) sent() (out []string) {
	for _, r := range e.api.Requests() {
		name := r.Path[strings.LastIndex(r.Path, "/")+1:]
		if what := r.Method + " " + name; name != "configmaps" && name != "secrets" && name != "gadgets" &&
			!slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// TestWhoDeletesWhat: asked is garbage because its owner was seen to go, inferred because none was
// ever there, and freed is to lose one of two owners. What is decided is done by the workers, or
// not, as they are told.
func TestWhoDeletesWhat(t *testing.T) {
	refuse := func(graph.Action) (bool, time.Duration) { return false, 0 }
	for name, c := range map[string]struct {
		change func(*Workers, *watchers)
		sent   []string
		shadow []string // what is decided
		braked []string // deletes that the brake is told of
	}{
		"alone": {func(*Workers, *watchers) {}, []string{"DELETE asked", "DELETE inferred", "GET never", "PATCH freed"},
			nil, nil},
		"nothing is sent in shadow mode but lookups": {func(w *Workers, s *watchers) { w.Shadow = s.Decided }, []string{"GET never"},
			[]string{"delete asked", "delete inferred", "look inferred", "release freed"}, nil},
		"what others delete is theirs": {func(w *Workers, _ *watchers) {
			w.Others = func(ref graph.Ref, _ bool) bool { return ref.Name == "asked" }
		}, []string{"DELETE inferred", "GET never", "PATCH freed"}, nil, nil},
		"a brake holds what is inferred": {func(w *Workers, s *watchers) {
			w.Brake, s.allows = s, refuse
		}, []string{"DELETE asked", "GET never", "PATCH freed"}, nil, []string{"asked"}},
		"a brake lets it go": {func(w *Workers, s *watchers) {
			w.Brake, s.allows = s, func(graph.Action) (bool, time.Duration) { return true, 0 }
		}, []string{"DELETE asked", "DELETE inferred", "GET never", "PATCH freed"}, nil, []string{"asked", "inferred"}},
		"a brake lets it go a minute later": {func(w *Workers, s *watchers) {
			begins := time.Now().Add(time.Minute)
			w.Brake, s.allows = s, func(graph.Action) (bool, time.Duration) {
				return !time.Now().Before(begins), time.Until(begins)
			}
		}, []string{"DELETE asked", "DELETE inferred", "GET never", "PATCH freed"}, nil, []string{"asked", "inferred"}},
		"beside another collector nothing is sent": {func(w *Workers, _ *watchers) { w.Beside = true }, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, s := newEdge(t, nil), &watchers{}
				e.put(fixture.ConfigMaps, "boss")
				e.put(fixture.ConfigMaps, "lives")
				e.put(fixture.ConfigMaps, "asked", "ConfigMap/boss")
				e.put(fixture.ConfigMaps, "freed", "ConfigMap/boss", "ConfigMap/lives")
				e.put(fixture.Secrets, "inferred", "ConfigMap/never")
				c.change(e.work, s)
				e.run(4, func(context.Context) {
					<-time.After(time.Second)
					e.api.Remove(key(fixture.ConfigMaps, "boss"))
					<-time.After(2 * time.Minute)
					if got := e.sent(); !slices.Equal(got, c.sent) {
						t.Errorf("sent %q, want %q", got, c.sent)
					}
					if age := e.work.Oldest(); age != 0 && name != "a brake lets it go a minute later" {
						t.Errorf("something has waited for %s, and there is nothing to do", age)
					}
				})
				slices.Sort(s.decided)
				slices.Sort(s.deleted)
				if !slices.Equal(s.decided, c.shadow) || !slices.Equal(s.deleted, c.braked) {
					t.Errorf("the shadow is told %q, want %q; the brake of %q, want %q", s.decided, c.shadow, s.deleted, c.braked)
				}
			})
		})
	}
}

// TestOwnersBesideOneThatLivesAreLookedUpInTheirTime: each of many, and no faster than paced; what
// was gone by then is not asked about.
func TestOwnersBesideOneThatLivesAreLookedUpInTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 500
		e := newEdge(t, nil)
		e.put(fixture.ConfigMaps, "lives")
		for _, name := range numbered("leaf", many) {
			e.put(fixture.ConfigMaps, name, "ConfigMap/lives", "Secret/never-"+name)
		}
		e.run(4, func(context.Context) {
			<-time.After(time.Second)
			asked := 0
			for _, what := range e.sent() {
				if strings.HasPrefix(what, "GET never-") {
					asked++
				}
			}
			if most := lowPriorityLookups + lowPriorityLookups/10; asked < lowPriorityLookups || asked > most {
				t.Errorf("%d lookups in the first second, want %d at most", asked, most)
			}
			for _, name := range numbered("leaf", many)[many/2:] {
				e.api.Remove(key(fixture.ConfigMaps, name)) // of whichever
			}
			<-time.After(10 * time.Second)
			for _, name := range numbered("leaf", many)[:many/2] {
				refs, _ := e.api.Get(key(fixture.ConfigMaps, name))["metadata"].(map[string]any)["ownerReferences"].([]any)
				if len(refs) != 1 {
					t.Fatalf("%s has %d owners, want the one that lives", name, len(refs))
				}
			}
			if age := e.work.Oldest(); age != 0 {
				t.Errorf("something has waited for %s", age)
			}
		})
	})
}

// TestObjectIsLeftAloneForAsLongAsItsKindAsks: in bounds, by whoever refuses, and without that for
// ever longer.
func TestObjectIsLeftAloneForAsLongAsItsKindAsks(t *testing.T) {
	for name, c := range map[string]struct {
		code        int
		body        string
		after       int
		least, most int // tries in ten minutes
	}{
		"a webhook refuses": {403, `admission webhook "x.example.com" denied the request: no`, 0, 8, 30},
		"it asks for 30 s":  {503, "come back", 30, 15, 22},
		"for a day":         {503, "come back", 86400, 4, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				tries := 0
				e := newEdge(t, fault(func(r *http.Request) (*http.Response, error) {
					if !about(r, fixture.ConfigMaps, http.MethodDelete) {
						return nil, nil
					}
					mu.Lock()
					defer mu.Unlock()
					tries++
					answer := fixture.Reply(r, c.code, "", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":%q,"details":{"retryAfterSeconds":%d}}`, c.code, c.body, c.after))
					answer.Header.Set("Content-Type", "application/json")
					return answer, nil
				}).through)
				e.put(fixture.ConfigMaps, "boss")
				e.put(fixture.ConfigMaps, "leaf", "ConfigMap/boss")
				e.run(1, func(context.Context) {
					e.api.Remove(key(fixture.ConfigMaps, "boss"))
					<-time.After(10 * time.Minute)
					if age := e.work.Oldest(); age < 9*time.Minute {
						t.Errorf("it waits for %s", age)
					}
				})
				if tries < c.least || tries > c.most {
					t.Errorf("%d tries in ten minutes, want %d to %d", tries, c.least, c.most)
				}
			})
		})
	}
}

// TestCascadeNamesTheKindsWithMostObjects: ten of them, and how many more there are; in an order
// that is always the same.
func TestCascadeNamesTheKindsWithMostObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecords(logr.Discard())
		collect := func(kind string, n int) {
			for i := range n {
				r.collected(graph.Action{Verb: graph.Delete, Cause: graph.Claim{APIVersion: "v1", Kind: "Thing", Namespace: "x",
					Namespaced: true, Name: "boss", UID: "boss"},
					Object: graph.Ref{Kind: schema.GroupResource{Resource: kind}, UID: types.UID(fmt.Sprint(kind, i))}})
			}
		}
		for _, kind := range []string{"l", "k", "j", "i", "h", "g", "f", "e", "d", "c", "b", "a"} {
			collect(kind, 1)
		}
		collect("f", 2)
		r.report(0)
		r.expect(t,
			"Thing x/boss: 14 objects that it owned, directly or not, were deleted by garbage collection within 1s: 3 f, 1 a, "+
				"1 b, 1 c, 1 d, 1 e, 1 g, 1 h, 1 i, 1 j, objects of 2 more kinds")
	})
}

// TestWhatIsLeftIsToldAtTheEnd: cascades that go on when the process ends are told as far as they
// came, and tells are made each second until then.
func TestWhatIsLeftIsToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecords(logr.Discard())
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.run(ctx); close(ended) }()
		r.collect("first", "rests", 0)
		<-time.After(quiet + 2*time.Second)
		synctest.Wait()
		r.expect(t, "Thing x/rests: 1 object that it owned was deleted by garbage collection within 1s: 1 configmaps")
		r.collect("second", "goes-on", 0)
		end()
		<-ended
		r.expect(t, "Thing x/goes-on: 1 object that it owned was deleted by garbage collection within 1s: 1 configmaps")
	})
}

package follow

import (
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// halted is an API server on which each list of ConfigMaps stops after its first page, until a test
// says how it goes on.
type halted struct {
	*watching
	reached chan int               // is sent the number of each list that has come so far
	goOn    chan http.RoundTripper // sends the rest; nil: the API server does
}

// halt stops each list of ConfigMaps after as many objects as the graph takes in at once. It is to
// be called before the lists begin.
func (e *watching) halt() *halted {
	h := &halted{e, make(chan int, 100), make(chan http.RoundTripper)}
	e.watcher.page = listPiece
	number := 0
	e.page = func(resource string, r *http.Request, api http.RoundTripper) (*http.Response, error) {
		if resource != "configmaps" {
			return api.RoundTrip(r)
		}
		number++
		h.reached <- number
		select {
		case next := <-h.goOn:
			if next == nil {
				next = api
			}
			return next.RoundTrip(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return h
}

// decides is the decision about an object; nothing is begun by it.
func (e *watching) decides(uid types.UID) (a graph.Action) {
	e.store.Read(func(g *graph.Graph) { a = g.Decide(uid) })
	return a
}

// many makes more ConfigMaps than the graph takes in at once, and than the first page has.
func (e *watching) many() {
	for i := range listPiece + 10 {
		e.configMap(fmt.Sprintf("m-%03d", i), "")
	}
}

// halfway starts it, and returns when the first list of ConfigMaps has come as far as it does by
// itself.
func (h *halted) halfway() {
	h.Helper()
	h.start()
	<-h.reached
	h.untilState(5*time.Second, "widgets.example.com", graph.Synced)
	if k := h.kind("configmaps"); k.State != graph.Listing || k.Objects != listPiece {
		h.Fatalf("halfway through the list ConfigMaps are %s, and the graph has %d", k.State, k.Objects)
	}
}

func TestFirstListIsInTheGraphAsItComesAndCompleteAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.many()
		h := e.halt()
		h.halfway()
		e.until(slowAfter, "the list is slow", func() bool { return e.kind("configmaps").State == graph.Slow })
		h.goOn <- nil
		e.untilState(time.Second, "configmaps", graph.Synced)
		if n := e.kind("configmaps").Objects; n != listPiece+10 {
			t.Errorf("%d objects, want %d", n, listPiece+10)
		}
		e.configMap("late", "")
		e.until(time.Second, "the watch goes on", func() bool { return e.kind("configmaps").Objects == listPiece+11 })
		if n := e.listsOf("configmaps"); n != 1 {
			t.Errorf("%d lists, want 1", n)
		}
	})
}

// TestFirstListThatBreaksOffBeginsAgain, whatever ended it: nothing follows from what it showed and
// the next one does not show.
func TestFirstListThatBreaksOffBeginsAgain(t *testing.T) {
	cut := sending(func(*http.Request) (*http.Response, error) { return nil, syscall.ETIMEDOUT })
	refuses := func(code int, reason string) http.RoundTripper {
		return sending(func(r *http.Request) (*http.Response, error) {
			resp := fixture.Reply(r, code, "",
				fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "reason": %q}`, code, reason))
			resp.Header.Set("Content-Type", "application/json")
			return resp, nil
		})
	}
	for name, c := range map[string]struct {
		after time.Duration // of half the list
		next  http.RoundTripper
		away  time.Duration // for which no API server is there then
	}{
		"its connection ends":                {after: 2 * time.Second, next: cut},
		"its connection ends at once":        {next: cut},
		"it is too old to go on":             {next: refuses(410, "Expired")},
		"the API server fails":               {next: refuses(500, "InternalError")},
		"it may not be read any more":        {next: refuses(403, "Forbidden")},
		"no API server is there for a while": {after: 2 * time.Second, away: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("boss", "")
				e.api.Put("widgets",
					"{apiVersion: example.com/v1, kind: Widget, metadata: {name: leaf, namespace: shop, uid: uid-leaf, "+
						"ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]}}")
				e.many()
				h := e.halt()
				h.halfway()
				if a := e.decides("uid-leaf"); a.Verb != graph.Keep {
					t.Errorf("with its owner shown: %s leaf: %s", a.Verb, a.Why)
				}
				e.api.Forget("configmaps/shop/boss")
				e.pass(c.after)
				if c.away > 0 {
					e.api.Down()
					time.AfterFunc(c.away, e.api.Up)
				}
				h.goOn <- c.next
				go func() { // the next list goes on, if it is stopped: it is not when it is asked for as a whole
					select {
					case h.goOn <- nil:
					case <-t.Context().Done():
					}
				}()
				e.untilState(2*time.Minute, "configmaps", graph.Synced)
				if n := e.kind("configmaps").Objects; n != listPiece+10 {
					t.Errorf("%d objects, want %d", n, listPiece+10)
				}
				if a := e.decides("uid-leaf"); a.Verb != graph.Lookup {
					t.Errorf("with a whole list: %s leaf: %s", a.Verb, a.Why)
				}
			})
		})
	}
}

// TestWhatHappensDuringTheFirstListComesAfterIt, by the watch: all pages are of one version, and
// the watch goes on from there.
func TestWhatHappensDuringTheFirstListComesAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		var told []string
		e.watcher.Listen(Listener{Terminating: func(m *metav1.PartialObjectMetadata) {
			e.mu.Lock()
			defer e.mu.Unlock()
			told = append(told, m.Name)
		}})
		const deleted = ", finalizers: [example.com/one], deletionTimestamp: '2000-01-01T00:00:00Z'"
		e.configMap("boss", "")
		e.configMap("going", deleted)
		e.configMap("leaf", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]")
		e.many()
		h := e.halt()
		h.halfway()
		e.configMap("a-new", "")
		e.configMap("z-new", "")
		e.configMap("z-going", deleted)
		e.api.Remove("configmaps/shop/boss")
		e.pass(time.Second)
		e.mu.Lock()
		if len(told) > 0 {
			t.Errorf("in the middle of the list %q are told of", told)
		}
		e.mu.Unlock()
		h.goOn <- nil
		e.until(time.Second, "it is complete", func() bool { return e.kind("configmaps").State == graph.Synced })
		e.until(time.Second, "what came meanwhile is there, and what went is not", func() bool {
			return e.kind("configmaps").Objects == listPiece+10+3+2
		})
		if a := e.decides("uid-leaf"); a.Verb != graph.Delete {
			t.Errorf("%s leaf: %s", a.Verb, a.Why)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if want := []string{"going", "z-going"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

// TestFollowingThatEndsDuringTheFirstList leaves nothing behind, and what is listed after that is
// complete.
func TestFollowingThatEndsDuringTheFirstList(t *testing.T) {
	for name, end := range map[string]func(*halted){
		"the process ends": func(*halted) {},
		"the kind goes, and comes back": func(h *halted) {
			h.serve("configmaps", "")
			h.watcher.ask()
			h.until(grace+time.Second, "it is not watched any more", func() bool {
				k := h.kind("configmaps")
				return k.State == graph.Unwatched && k.Objects == 0
			})
			h.serve("configmaps", "ConfigMap v1")
			h.watcher.ask()
		},
		"the history goes back": func(h *halted) { h.watcher.rewind(h.Context(), "test") },
		"it is listed again":    func(h *halted) { h.watcher.kindWentBack(fixture.ConfigMaps) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("a-stale", "")
				e.many()
				h := e.halt()
				h.halfway()
				e.api.Forget("configmaps/shop/a-stale")
				if end(h); name == "the process ends" {
					return
				}
				<-h.reached
				h.goOn <- nil
				e.untilState(time.Second, "configmaps", graph.Synced)
				if n := e.kind("configmaps").Objects; n != listPiece+10 {
					t.Errorf("%d objects, want %d", n, listPiece+10)
				}
			})
		})
	}
}

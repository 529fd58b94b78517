package follow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-dev/weir/controller/fixture"
	"github.com/weir-dev/weir/controller/graph"
)

// halted is a list of ConfigMaps as a stream that stops after some objects until a test says how it goes on.
type halted struct {
	*watching
	reached chan int                  // is sent the number of each list that has come so far
	goOn    chan func(io.Writer) bool // sends something, and tells whether the rest follows; nil: it does
}

// halt stops each list of ConfigMaps after n objects. It is to be called before the lists begin.
func (e *watching) halt(n int) *halted {
	h := &halted{e, make(chan int, 100), make(chan func(io.Writer) bool)}
	number := 0
	e.stream = func(resource string, list io.ReadCloser) io.ReadCloser {
		if resource != "configmaps" {
			return list
		}
		number++
		this := number
		in, out := io.Pipe()
		gone := make(chan struct{})
		go func() {
			lines := bufio.NewReader(list)
			for range n {
				line, err := lines.ReadString('\n')
				if _, failed := io.WriteString(out, line); err != nil || failed != nil {
					return
				}
			}
			if h.reached <- this; !h.rest(out, gone) {
				_ = out.Close() // never fails
				return
			}
			_, err := io.Copy(out, lines)
			out.CloseWithError(err)
		}()
		return &piped{PipeReader: in, list: list, gone: gone}
	}
	return h
}

// rest waits for what is to be sent now, and tells whether the list goes on.
func (h *halted) rest(out io.Writer, gone <-chan struct{}) bool {
	select {
	case f := <-h.goOn:
		return f == nil || f(out)
	case <-gone:
		return false
	}
}

// piped is a stream that something else is done with before it is read.
type piped struct {
	*io.PipeReader
	list io.Closer
	once sync.Once
	gone chan struct{} // closed when it is not read any more
}

// Close implements io.Closer.
func (p *piped) Close() error {
	p.once.Do(func() { close(p.gone) })
	return errors.Join(p.PipeReader.Close(), p.list.Close())
}

// opening is how many kinds are in the middle of their first list.
func (e *watching) opening() int {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	return len(e.store.opening)
}

// decides is the decision about an object; nothing is begun by it.
func (e *watching) decides(uid types.UID) (a graph.Action) {
	e.store.Read(func(g *graph.Graph) { a = g.Decide(uid) })
	return a
}

// event is what a watch sends.
func event(what, name string, version int, metadata string) string {
	return fmt.Sprintf(`{"type": %q, "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": %q, "namespace": "shop", "uid": "uid-%s", "resourceVersion": "%d"%s}}}`+"\n",
		what, name, name, version, metadata)
}

// many makes more ConfigMaps than the graph takes in at once.
func (e *watching) many() {
	for i := range listPiece + 10 {
		e.configMap(fmt.Sprintf("m-%03d", i), "")
	}
}

// halfway starts it, and returns when the first list of ConfigMaps has come as far as it does by itself.
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
		h := e.halt(listPiece + 10) // all but the bookmark
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

// TestFirstListIsNoWorkBeforeItsEnd: a new leader begins in its middle, and a widget goes that owns what it has shown.
func TestFirstListIsNoWorkBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.widget("boss")
		e.configMap("leaf", ", ownerReferences: [{apiVersion: example.com/v1, kind: Widget, name: boss, uid: uid-boss}]")
		e.configMap("lost", ", ownerReferences: [{apiVersion: example.com/v1, kind: Widget, name: never, uid: uid-never}]")
		e.many()
		h := e.halt(listPiece + 5)
		h.halfway()
		var work []types.UID
		e.store.Lead(func(uids []types.UID) {
			e.mu.Lock()
			defer e.mu.Unlock()
			work = append(work, uids...)
		})
		told := func() []types.UID {
			e.mu.Lock()
			defer e.mu.Unlock()
			return slices.Compact(slices.Sorted(slices.Values(work)))
		}
		e.api.Remove("widgets.example.com/shop/boss")
		e.until(time.Second, "the widget is gone", func() bool { return e.kind("widgets.example.com").Objects == 0 })
		if have := told(); len(have) > 0 {
			t.Errorf("before the end of the list there is work: %q", have)
		}
		h.goOn <- nil
		e.untilState(time.Second, "configmaps", graph.Synced)
		if have := told(); !slices.Contains(have, "uid-leaf") || !slices.Contains(have, "uid-lost") {
			t.Errorf("at its end the work is %q", have)
		}
		if a := e.decides("uid-leaf"); a.Verb != graph.Delete {
			t.Errorf("%s leaf: %s", a.Verb, a.Why)
		}
	})
}

// TestFirstListThatBreaksOffIsForgotten and begins again, whatever ended it: nothing follows from what it showed, nor from what the next
// one does not show.
func TestFirstListThatBreaksOffIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration // of half the list
		sent  string        // instead of the rest
		away  time.Duration // for which no API server is there then
	}{
		"its connection ends":                {after: 2 * time.Second},
		"its connection ends at once":        {},
		"the API server ends it":             {sent: `{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired"}}`},
		"something else comes":               {sent: `{"type": "ADDED", "object": {"kind": "Status", "apiVersion": "v1"}}`},
		"no API server is there for a while": {after: 2 * time.Second, away: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("boss", "")
				e.api.Put("widgets", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: leaf, namespace: shop, uid: uid-leaf, "+
					"ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]}}")
				e.many()
				h := e.halt(listPiece + 5)
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
				h.goOn <- func(out io.Writer) bool {
					fmt.Fprintln(out, c.sent)
					return false
				}
				e.until(time.Second, "what was shown is forgotten", func() bool {
					_, there := e.store.Find("uid-boss")
					return !there
				})
				if a := e.decides("uid-leaf"); a.Verb != graph.Lookup {
					t.Errorf("with half a list: %s leaf: %s", a.Verb, a.Why)
				}
				go func() { // lists as streams go on; a plain list is not stopped
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

// TestWhatHappensDuringTheFirstListIsPartOfIt: what goes is not listed, which proves nothing, and what changes is told of once, as it is at
// the end.
func TestWhatHappensDuringTheFirstListIsPartOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		var told []string
		e.watcher.Listen(Listener{Terminating: func(m *metav1.PartialObjectMetadata) {
			e.mu.Lock()
			defer e.mu.Unlock()
			told = append(told, m.Name+" "+m.ResourceVersion)
		}})
		const deleted = ", deletionTimestamp: '2000-01-01T00:00:00Z'"
		e.configMap("boss", deleted)
		e.configMap("changing", deleted)
		e.configMap("leaf", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}]")
		h := e.halt(3)
		h.start()
		<-h.reached
		const terminating = `, "deletionTimestamp": "2000-01-01T00:00:00Z"`
		h.goOn <- func(out io.Writer) bool {
			_, err := io.WriteString(out, event("MODIFIED", "changing", 11, terminating)+event("BOOKMARK", "", 11, "")+ // not at its end
				event("DELETED", "boss", 12, terminating)+event("ADDED", "new", 13, ""))
			return err == nil
		}
		e.until(5*time.Second, "it is complete", func() bool { return e.kind("configmaps").State == graph.Synced })
		if n := e.kind("configmaps").Objects; n != 3 {
			t.Errorf("%d objects, want changing, leaf and new", n)
		}
		if a := e.decides("uid-leaf"); a.Verb != graph.Lookup {
			t.Errorf("%s leaf: %s", a.Verb, a.Why)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if want := []string{"changing 11"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

// TestFollowingThatEndsDuringTheFirstList leaves nothing behind, and what is listed after that is complete.
func TestFollowingThatEndsDuringTheFirstList(t *testing.T) {
	for name, end := range map[string]func(*halted){
		"the process ends": func(*halted) {},
		"the kind goes, and comes back": func(h *halted) {
			h.serve("configmaps", "")
			h.watcher.ask()
			h.until(grace+time.Second, "it is not watched any more", func() bool {
				k := h.kind("configmaps")
				return k.State == graph.Unwatched && k.Objects == 0 && h.opening() == 0
			})
			h.serve("configmaps", "ConfigMap v1")
			h.watcher.ask()
		},
		"the history goes back": func(h *halted) { h.watcher.rewind(h.Context(), "test") },
		"it is listed again":    func(h *halted) { h.watcher.restart(h.Context(), fixture.ConfigMaps) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.configMap("a-stale", "")
				e.many()
				h := e.halt(listPiece + 5)
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
				if n := e.opening(); n > 0 {
					t.Errorf("%d kinds are still being listed", n)
				}
			})
		})
	}
}

// TestLaterListIsWholeBeforeTheGraphHasIt, since it is held against what was seen before.
func TestLaterListIsWholeBeforeTheGraphHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.many()
		h := e.halt(listPiece + 5)
		h.halfway()
		h.goOn <- nil
		e.untilState(time.Second, "configmaps", graph.Synced)
		e.pass(2 * time.Second)
		e.api.Forget("configmaps/shop/m-000")
		e.configMap("new", "")
		e.until(time.Second, "the new one is there", func() bool { return e.kind("configmaps").Objects == listPiece+11 })
		e.api.Forget("configmaps/shop/m-001")
		e.api.Cut()
		e.configMap("a-new", "") // which the list alone shows
		<-h.reached
		synctest.Wait()
		if n := e.kind("configmaps").Objects; n != listPiece+11 {
			t.Errorf("in the middle of the list there are %d objects, want %d", n, listPiece+11)
		}
		h.goOn <- nil
		e.until(time.Second, "the list is taken in", func() bool { return e.kind("configmaps").Objects == listPiece+10 })
	})
}

// TestListThatIsNotTheOneThatCameIsTakenInAsAWhole: client-go hands on another one than was taken in.
func TestListThatIsNotTheOneThatCameIsTakenInAsAWhole(t *testing.T) {
	one := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "shop", UID: "uid-one", ResourceVersion: "5"}}
	two := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "two", Namespace: "shop", UID: "uid-two", ResourceVersion: "6"}}
	end := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	for name, c := range map[string]struct {
		list    []any
		version string
		want    []types.UID
	}{
		"the same":            {nil, "7", []types.UID{"uid-one"}},
		"other objects":       {[]any{two}, "7", []types.UID{"uid-two"}},
		"at another version":  {nil, "8", nil},
		"other, and at later": {[]any{one, two}, "8", []types.UID{"uid-one", "uid-two"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			s.Apply(graph.Serving{Resources: []graph.Resource{{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}}})
			f := &Feed{Kind: fixture.ConfigMaps, Store: s, check: func([]any, string) error { return nil }, level: func(bool) {}}
			f.begin()
			for _, e := range []watch.Event{{Type: watch.Added, Object: one.DeepCopy()}, {Type: watch.Bookmark, Object: end}} {
				if _, err := f.take(e); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Replace(c.list, c.version); err != nil {
				t.Fatal(err)
			}
			var have []types.UID
			for _, v := range s.Views() {
				have = append(have, v.UID)
			}
			if !slices.Equal(have, c.want) || s.Stats().Kinds[0].State != graph.Synced {
				t.Errorf("the graph has %q, want %q", have, c.want)
			}
		})
	}
}

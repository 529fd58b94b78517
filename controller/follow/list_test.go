package follow

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// TestListIsReadAsAWholeWhenItsPagesTakeTooLong, the first one and a later one: a kind that has
// many objects would never be listed.
func TestListIsReadAsAWholeWhenItsPagesTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.watcher.page = 100
		e.many()
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Query, "continue=") {
				return apitest.Refuse(410, "Expired", "the provided continue parameter is too old")
			}
			return nil
		})
		e.whole()
		lists := e.listsOf("configmaps")
		e.api.Forget("configmaps/shop/m-000")
		e.api.Cut()
		e.configMap("new", "")
		e.configMap("newer", "")
		e.until(5*time.Second, "it is listed again", func() bool { return e.kind("configmaps").Objects == listPiece+10+2-1 })
		if again := e.listsOf("configmaps") - lists; lists != 2 || again != 2 {
			t.Errorf("%d and %d lists, want 2 each: in pages, and as a whole", lists, again)
		}
	})
}

// TestNothingOfAListComesAfterItsKindHasLeft, although client-go does not wait for it.
func TestNothingOfAListComesAfterItsKindHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.many()
		for _, name := range strings.Split("abcdefgh", "") {
			for i := range listPiece / 8 {
				e.configMap(name+strings.Repeat("x", i), "")
			}
		}
		e.watcher.page = listPiece
		reached, answer := make(chan struct{}, 1), make(chan struct{})
		e.page = func(_ string, r *http.Request, api http.RoundTripper) (*http.Response, error) {
			reached <- struct{}{}
			<-answer // whatever the context says
			return api.RoundTrip(r.WithContext(t.Context()))
		}
		e.start()
		<-reached
		e.serve("configmaps", "")
		e.watcher.ask()
		e.pass(grace + time.Second)
		if s := e.kind("configmaps").State; s == graph.Unwatched {
			t.Error("the kind has left, and its list is under way")
		}
		close(answer)
		e.untilState(5*time.Second, "configmaps", graph.Unwatched)
		e.pass(time.Second)
		if n := e.kind("configmaps").Objects; n > 0 {
			t.Errorf("%d objects", n)
		}
	})
}

// TestWatchGoesOnFromTheFirstPage, be it that an API server shows later pages as they are later:
// nothing is missed between.
func TestWatchGoesOnFromTheFirstPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.many()
		e.watcher.page = listPiece
		e.page = func(resource string, r *http.Request, api http.RoundTripper) (*http.Response, error) {
			version, _, _ := strings.Cut(r.URL.Query().Get("continue"), "/")
			e.configMap("a-new", "") // before all that the first page has
			resp, err := api.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			body, err := io.ReadAll(resp.Body)
			later := strings.Replace(string(body), fmt.Sprintf(`"resourceVersion":%q}`, version),
				`"resourceVersion":"100000"}`, 1)
			if later == string(body) {
				t.Errorf("no version %s in %s", version, body)
			}
			resp.Body = io.NopCloser(strings.NewReader(later))
			return resp, err
		}
		e.whole()
		e.until(time.Second, "what came between is there", func() bool {
			return e.kind("configmaps").Objects == listPiece+11
		})
	})
}

// TestListThatHasNoEndIsGivenUp, and tried again: an API that gives another token with each page,
// and nothing with it, would be asked for ever.
func TestListThatHasNoEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.many()
		e.watcher.page = 100
		pages := 0
		e.fail(func(r apitest.Request) *apitest.Reply {
			if !strings.HasSuffix(r.Path, "/configmaps") || strings.Contains(r.Query, "watch=") {
				return nil
			}
			pages++
			return &apitest.Reply{Code: 200, Body: map[string]any{"kind": "PartialObjectMetadataList",
				"apiVersion": "meta.k8s.io/v1",
				"metadata":   map[string]any{"resourceVersion": "1", "continue": fmt.Sprint(pages)}, "items": []any{}}}
		})
		e.start()
		e.pass(time.Minute)
		if pages == 0 || pages > 300 {
			t.Errorf("%d pages in a minute", pages)
		}
		e.fail(nil)
		e.until(2*time.Minute, "it is listed", func() bool { return e.kind("configmaps").Objects == listPiece+10 })
	})
}

package follow

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/metadata"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestOneSickKindShutsNoGate: what is wrong with one kind, or with one request, says nothing about
// the storage of all others.
func TestOneSickKindShutsNoGate(t *testing.T) {
	failing := apitest.Refuse(500, "InternalError", "no")
	for name, c := range map[string]struct {
		answer func(apitest.Request) *apitest.Reply
		cut    bool // every watch of widgets ends
		hang   bool // widgets are not answered
	}{
		"its lists and watches fail":     {answer: refusing("widgets", failing), cut: true},
		"its storage is late":            {answer: refusing("widgets", apitest.Refuse(504, "Timeout", "timeout")), cut: true},
		"a read of it fails":             {answer: refusing("one", failing)},
		"its API is not there":           {answer: refusing("one", apitest.Refuse(503, "ServiceUnavailable", "no"))},
		"a read of it takes too long":    {hang: true},
		"it ends each watch before time": {cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWatching(t)
				e.widget("one")
				e.whole()
				e.fail(c.answer)
				e.hang = func(path string) bool { return c.hang && strings.HasSuffix(path, "/widgets/one") }
				config := e.api.Config()
				config.Transport = e.history.Guard(e.transport)
				client, err := metadata.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				for range 30 {
					if c.cut {
						e.watcher.follower(widgetKind).current.Interface.Stop()
					}
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // as of a read of a writer
					_, err := client.Resource(widgetKind.WithVersion("v1")).Namespace("shop").Get(ctx, "one", metav1.GetOptions{})
					if c.hang && !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("the read ended with %v", err)
					}
					cancel()
					e.pass(time.Second)
				}
				if n := e.losses(); n != 0 {
					t.Errorf("the gate was shut %d times", n)
				}
			})
		})
	}
}

// TestOwnDeadlineIsNoLossOfContact, and neither is a stream that the API server gives up: the
// connection is there.
func TestOwnDeadlineIsNoLossOfContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		client := &http.Client{Timeout: time.Second, Transport: e.history.Guard(fixture.Tripper(fixture.Hang))}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Fatal("it was answered")
		}
		if n := e.losses(); n != 0 {
			t.Errorf("the gate was shut %d times", n)
		}
	})
}

// losses is how often contact was taken for lost.
func (e *watching) losses() uint64 {
	e.history.mu.Lock()
	defer e.history.mu.Unlock()
	return e.history.losses
}

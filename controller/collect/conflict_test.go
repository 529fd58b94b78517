package collect

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// far delays each request but watches on its way to the API server.
func far(latency time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(latency):
				return next.RoundTrip(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
	}
}

// write annotates an object, from now on until it is gone, every 10 ms.
func (e *edge) write(ctx context.Context, name string) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://api.test/api/v1/namespaces/shop/configmaps/"+name,
			strings.NewReader(`{"metadata":{"annotations":{"at":"`+time.Now().String()+`"}}}`))
		if err != nil {
			e.Error(err)
			return
		}
		answer, err := e.api.RoundTrip(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			return
		}
		answer.Body.Close()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

const withForeground = `{apiVersion: v1, kind: ConfigMap, metadata: {name: boss, namespace: shop, finalizers: [foregroundDeletion], deletionTimestamp: "2000-01-01T00:00:00Z"}}`

// TestConflictThatAWebhookChoseIsARefusal: it says nothing about resourceVersions, so there is
// nothing to read again, and a delete without one would only be refused once more.
func TestConflictThatAWebhookChoseIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, far(15*time.Millisecond))
		e.put(fixture.ConfigMaps, "leaf", "ConfigMap/never-was")
		e.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Method == http.MethodDelete {
				return apitest.Refuse(http.StatusConflict, "Conflict", `admission webhook "not.now" denied the request: not now`)
			}
			return nil
		})
		e.run(4, func(ctx context.Context) {
			ctx, stop := context.WithCancel(ctx)
			written := make(chan struct{})
			go func() { e.write(ctx, "leaf"); close(written) }()
			<-time.After(10 * time.Second)
			stop()
			<-written
			deletes, reads := 0, 0
			for _, r := range e.api.Requests() {
				switch {
				case !strings.HasSuffix(r.Path, "/leaf"):
				case r.Method == http.MethodGet:
					reads++
				case r.Method == http.MethodDelete:
					if deletes++; !strings.Contains(r.Body, "resourceVersion") {
						t.Errorf("sent without a resourceVersion: %s", r)
					}
				}
			}
			if deletes == 0 || reads > 0 {
				t.Errorf("%d deletes and %d reads of the object, want some deletes and no read", deletes, reads)
			}
		})
	})
}

// TestObjectThatWentUnseenLeavesTheGraph: a watch that missed the end of an object would have it
// deleted for ever, and its owner wait for it.
func TestObjectThatWentUnseenLeavesTheGraph(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*edge)
		gone   bool
	}{
		"when nothing has its name": {func(*edge) {}, true},
		"when another has its name": {func(e *edge) { e.put(fixture.ConfigMaps, "ghost") }, true},
		// Whoever answered does not know the kind, or does not say which object it is about.
		"but not at any other 404": {func(e *edge) {
			e.api.Intercept(func(r apitest.Request) *apitest.Reply {
				if strings.HasSuffix(r.Path, "/ghost") {
					return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
				}
				return nil
			})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEdge(t, nil)
				e.api.Put("configmaps", withForeground)
				tc.before(e)
				e.run(4, func(context.Context) {
					e.store.Apply(graph.Observed{Object: &graph.Object{
						Kind: fixture.ConfigMaps, UID: "unseen", Namespace: "shop", Name: "ghost", ResourceVersion: "1",
						Owners: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: "uid-boss",
							BlockOwnerDeletion: new(true)}},
					}})
					<-time.After(10 * time.Second)
					if _, there := e.store.Find("unseen"); there == tc.gone {
						t.Errorf("in the graph: %t", there)
					}
					if gone := len(e.there(fixture.ConfigMaps, "boss")) == 0; gone != tc.gone {
						t.Errorf("the owner that waits for it is gone: %t, want %t", gone, tc.gone)
					}
					if e.there(fixture.ConfigMaps, "ghost") == nil && name == "when another has its name" {
						t.Error("the other object is gone")
					}
				})
			})
		})
	}
}

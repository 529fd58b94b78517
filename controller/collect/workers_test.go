package collect

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// fault stands between requests and the API server: nil passes a request on.
type fault func(*http.Request) (*http.Response, error)

func (f fault) through(next http.RoundTripper) http.RoundTripper {
	return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
		if answer, err := f(r); answer != nil || err != nil {
			return answer, err
		}
		return next.RoundTrip(r)
	})
}

// about tells whether a request does something to an object of a kind, or to any if that is empty.
func about(r *http.Request, kind schema.GroupResource, method string) bool {
	return r.Method == method && strings.Contains(r.URL.Path, "/"+kind.Resource)
}

const tooMany = "Too many requests, please try again later."

// cascade deletes the owner of n ConfigMaps, each of whose requests takes 10 ms, and returns how
// long it takes until they are gone.
func (e *edge) cascade(n int) time.Duration {
	began := time.Now()
	e.api.Remove(key(fixture.ConfigMaps, "boss"))
	for len(e.there(fixture.ConfigMaps, numbered("leaf", n)...)) > 0 {
		<-time.After(5 * time.Millisecond)
		if time.Since(began) > time.Minute {
			e.Error("the cascade does not end")
			break
		}
	}
	return time.Since(began)
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}

// TestFailingKindDoesNotSlowACascade: thousands of objects of a kind whose API, or a webhook, fails
// come first, and the ConfigMaps behind them are deleted as if they were alone.
func TestFailingKindDoesNotSlowACascade(t *testing.T) {
	const leaves, stuck = 300, 1000
	alone := cascadeBeside(t, leaves, 0, func(*http.Request) (*http.Response, error) { return nil, nil })
	for name, f := range map[string]fault{
		"429 for half a minute": func(r *http.Request) (*http.Response, error) {
			if about(r, fixture.Gadgets, http.MethodDelete) {
				return fixture.Reply(r, 429, "30", tooMany), nil
			}
			return nil, nil
		},
		"429 without Retry-After": func(r *http.Request) (*http.Response, error) {
			if about(r, fixture.Gadgets, http.MethodDelete) {
				return fixture.Reply(r, 429, "", tooMany), nil
			}
			return nil, nil
		},
		"deletes hang": func(r *http.Request) (*http.Response, error) {
			if about(r, fixture.Gadgets, http.MethodDelete) {
				return fixture.Hang(r)
			}
			return nil, nil
		},
		"deletes are slow": func(r *http.Request) (*http.Response, error) {
			if about(r, fixture.Gadgets, http.MethodDelete) {
				<-time.After(3 * time.Second)
			}
			return nil, nil
		},
		"deletes fail": func(r *http.Request) (*http.Response, error) {
			if about(r, fixture.Gadgets, http.MethodDelete) {
				return fixture.Reply(r, 503, "", "service unavailable"), nil
			}
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			took := cascadeBeside(t, leaves, stuck, f)
			t.Logf("%d ConfigMaps in %s, and in %s alone", leaves, took, alone)
			if took > alone*10/9 {
				t.Errorf("the cascade took %s, and %s without the fault", took, alone)
			}
		})
	}
}

// cascadeBeside returns how long a cascade takes that begins shortly after there are other objects
// to delete.
func cascadeBeside(t *testing.T, leaves, stuck int, f fault) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, func(next http.RoundTripper) http.RoundTripper {
			return far(10 * time.Millisecond)(f.through(next))
		})
		e.put(fixture.ConfigMaps, "boss")
		e.put(fixture.ConfigMaps, "other")
		for _, n := range numbered("leaf", leaves) {
			e.put(fixture.ConfigMaps, n, "ConfigMap/boss")
		}
		for _, n := range numbered("stuck", stuck) {
			e.put(fixture.Gadgets, n, "ConfigMap/other")
		}
		e.run(2*request.DefaultConcurrency, func(context.Context) {
			e.api.Remove(key(fixture.ConfigMaps, "other"))
			<-time.After(500 * time.Millisecond)
			took = e.cascade(leaves)
		})
	})
	return took
}

// TestKindIsTriedAgainWhenItFailsNoMore: what was put off is neither lost nor late.
func TestKindIsTriedAgainWhenItFailsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := time.Now().Add(time.Minute)
		e := newEdge(t, fault(func(r *http.Request) (*http.Response, error) {
			if about(r, fixture.Gadgets, http.MethodDelete) && time.Now().Before(ends) {
				return fixture.Reply(r, 429, "5", tooMany), nil
			}
			return nil, nil
		}).through)
		e.put(fixture.ConfigMaps, "boss")
		names := numbered("stuck", 1000)
		for _, n := range names {
			e.put(fixture.Gadgets, n, "ConfigMap/boss")
		}
		e.run(16, func(context.Context) {
			e.api.Remove(key(fixture.ConfigMaps, "boss"))
			<-time.After(time.Until(ends) - time.Millisecond)
			if sent := len(e.api.Requests()); sent != 0 {
				t.Errorf("%d requests came through", sent)
			}
			<-time.After(6 * time.Second)
			if left := e.there(fixture.Gadgets, names...); len(left) > 0 {
				t.Errorf("%d objects are left 6 s after the trouble", len(left))
			}
		})
	})
}

// TestRequestsThatHangEnd: each verb has a deadline, and objects of other kinds do not wait for it.
func TestRequestsThatHangEnd(t *testing.T) {
	for _, method := range []string{http.MethodDelete, http.MethodPatch, http.MethodGet} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var ended []time.Duration
				hangs := fault(func(r *http.Request) (*http.Response, error) {
					if !about(r, fixture.Secrets, method) {
						return nil, nil
					}
					sent := time.Now()
					answer, err := fixture.Hang(r)
					mu.Lock()
					defer mu.Unlock()
					ended = append(ended, time.Since(sent))
					return answer, err
				})
				e := newEdge(t, hangs.through)
				e.put(fixture.ConfigMaps, "boss")
				e.put(fixture.ConfigMaps, "leaf", "ConfigMap/boss")
				e.put(fixture.ConfigMaps, "staying")
				switch method {
				case http.MethodDelete:
					e.put(fixture.Secrets, "stuck", "ConfigMap/boss")
				case http.MethodPatch:
					e.put(fixture.Secrets, "stuck", "ConfigMap/boss", "ConfigMap/staying")
				case http.MethodGet: // an owner that no watch has shown
					e.put(fixture.ConfigMaps, "stuck", "Secret/never")
				}
				e.run(4, func(context.Context) {
					e.api.Remove(key(fixture.ConfigMaps, "boss"))
					<-time.After(time.Second)
					if left := e.there(fixture.ConfigMaps, "leaf"); len(left) > 0 {
						t.Error("an object of another kind waits")
					}
					<-time.After(request.Timeout)
					mu.Lock()
					defer mu.Unlock()
					if len(ended) == 0 || slices.Max(ended) != request.Timeout {
						t.Errorf("requests that hang ended after %v, want %s", ended, request.Timeout)
					}
				})
			})
		})
	}
}

// TestObjectThatGoesDuringALookupHasNothingToDo: another collector may be sooner, and nothing is
// decided about it any more.
func TestObjectThatGoesDuringALookupHasNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *edge
		var looked atomic.Int32
		e = newEdge(t, fault(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nobody") {
				looked.Add(1)
				e.api.Remove(key(fixture.ConfigMaps, "leaf"))
				<-time.After(time.Second) // the watch shows that first
			}
			return nil, nil
		}).through)
		e.put(fixture.ConfigMaps, "leaf", "ConfigMap/nobody")
		e.run(4, func(context.Context) {
			<-time.After(10 * time.Second)
			if looked.Load() != 1 {
				t.Errorf("%d lookups, want 1", looked.Load())
			}
			if age := e.work.Oldest(); age != 0 {
				t.Errorf("something has waited for %s", age)
			}
		})
	})
}

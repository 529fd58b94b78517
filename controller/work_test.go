package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// fault stands between requests and the API server: nil passes a request on.
type fault func(*http.Request) (*http.Response, error)

func (f fault) through(next http.RoundTripper) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
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

// hang never answers.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// reply answers in plain text, as limits do, which sit before all that knows of Status objects.
func reply(r *http.Request, code int, retryAfter, body string) *http.Response {
	h := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	if retryAfter != "" {
		h.Set("Retry-After", retryAfter)
	}
	return &http.Response{StatusCode: code, Header: h, Request: r, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}
}

const tooMany = "Too many requests, please try again later."

// cascade deletes the owner of n ConfigMaps, each of whose requests takes 10 ms, and returns how long it
// takes until they are gone.
func (e *edge) cascade(n int) time.Duration {
	began := time.Now()
	e.api.Remove(key(configMapKind, "boss"))
	for len(e.there(configMapKind, numbered("leaf", n)...)) > 0 {
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

// TestKindInTroubleDoesNotSlowACascade: thousands of objects of a kind whose API, or a webhook, is in trouble
// come first, and the ConfigMaps behind them are deleted as if they were alone.
func TestKindInTroubleDoesNotSlowACascade(t *testing.T) {
	const leaves, stuck = 1000, 2000
	alone := cascadeBeside(t, leaves, 0, func(*http.Request) (*http.Response, error) { return nil, nil })
	for name, f := range map[string]fault{
		"429 for half a minute": func(r *http.Request) (*http.Response, error) {
			if about(r, gadgetKind, http.MethodDelete) {
				return reply(r, 429, "30", tooMany), nil
			}
			return nil, nil
		},
		"429 without Retry-After": func(r *http.Request) (*http.Response, error) {
			if about(r, gadgetKind, http.MethodDelete) {
				return reply(r, 429, "", tooMany), nil
			}
			return nil, nil
		},
		"deletes hang": func(r *http.Request) (*http.Response, error) {
			if about(r, gadgetKind, http.MethodDelete) {
				return hang(r)
			}
			return nil, nil
		},
		"deletes are slow": func(r *http.Request) (*http.Response, error) {
			if about(r, gadgetKind, http.MethodDelete) {
				<-time.After(3 * time.Second)
			}
			return nil, nil
		},
		"deletes fail": func(r *http.Request) (*http.Response, error) {
			if about(r, gadgetKind, http.MethodDelete) {
				return reply(r, 503, "", "service unavailable"), nil
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

// cascadeBeside returns how long a cascade takes that begins shortly after there are other objects to delete.
func cascadeBeside(t *testing.T, leaves, stuck int, f fault) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, func(next http.RoundTripper) http.RoundTripper {
			return far(10 * time.Millisecond)(f.through(next))
		})
		e.put(configMapKind, "boss")
		e.put(configMapKind, "other")
		for _, n := range numbered("leaf", leaves) {
			e.put(configMapKind, n, "ConfigMap/boss")
		}
		for _, n := range numbered("stuck", stuck) {
			e.put(gadgetKind, n, "ConfigMap/other")
		}
		e.run(2*DefaultConcurrency, func(context.Context) {
			e.api.Remove(key(configMapKind, "other"))
			<-time.After(500 * time.Millisecond)
			took = e.cascade(leaves)
		})
	})
	return took
}

// TestKindIsTriedAgainWhenItsTroubleEnds: what was put off is neither lost nor late.
func TestKindIsTriedAgainWhenItsTroubleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := time.Now().Add(time.Minute)
		e := newEdge(t, fault(func(r *http.Request) (*http.Response, error) {
			if about(r, gadgetKind, http.MethodDelete) && time.Now().Before(ends) {
				return reply(r, 429, "5", tooMany), nil
			}
			return nil, nil
		}).through)
		e.put(configMapKind, "boss")
		names := numbered("stuck", 1000)
		for _, n := range names {
			e.put(gadgetKind, n, "ConfigMap/boss")
		}
		e.run(16, func(context.Context) {
			e.api.Remove(key(configMapKind, "boss"))
			<-time.After(time.Until(ends) - time.Millisecond)
			if sent := len(e.api.Requests()); sent != 0 {
				t.Errorf("%d requests came through", sent)
			}
			<-time.After(6 * time.Second)
			if left := e.there(gadgetKind, names...); len(left) > 0 {
				t.Errorf("%d objects are left 6 s after the trouble", len(left))
			}
		})
	})
}

// Test429OfTheAPIServerIsForAll: its own limits do not know kinds.
func Test429OfTheAPIServerIsForAll(t *testing.T) {
	for name, tc := range map[string]struct {
		kind schema.GroupResource
		body string
		want verdict
	}{
		"limits of the API server":           {configMapKind, tooMany, throttledByServer},
		"storage of one kind":                {configMapKind, "", throttledByKind},
		"limits, maybe of an aggregated API": {gadgetKind, tooMany, throttledByKind},
	} {
		e := newEdge(t, func(http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				if tc.body != "" {
					return reply(r, 429, "1", tc.body), nil
				}
				status := apierrors.NewTooManyRequests("storage is initializing", 1).Status()
				status.Kind, status.APIVersion = "Status", "v1"
				data, err := json.Marshal(status)
				if err != nil {
					return nil, err
				}
				answer := reply(r, 429, "1", string(data))
				answer.Header.Set("Content-Type", "application/json")
				return answer, nil
			})
		})
		err := e.req.delete(t.Context(), graph.Ref{Kind: tc.kind, Namespace: "shop", Name: "x", UID: "x"}, "Background")
		if v, after := judge(tc.kind, err); v != tc.want || after != time.Second {
			t.Errorf("%s: verdict %d after %s, want %d after 1s (%v)", name, v, after, tc.want, err)
		}
	}
}

// TestRequestsThatHangEnd: each verb has a deadline, and objects of other kinds do not wait for it.
func TestRequestsThatHangEnd(t *testing.T) {
	for _, method := range []string{http.MethodDelete, http.MethodPatch, http.MethodGet} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var ended []time.Duration
				hangs := fault(func(r *http.Request) (*http.Response, error) {
					if !about(r, secretKind, method) {
						return nil, nil
					}
					sent := time.Now()
					answer, err := hang(r)
					mu.Lock()
					defer mu.Unlock()
					ended = append(ended, time.Since(sent))
					return answer, err
				})
				e := newEdge(t, hangs.through)
				e.put(configMapKind, "boss")
				e.put(configMapKind, "leaf", "ConfigMap/boss")
				e.put(configMapKind, "staying")
				switch method {
				case http.MethodDelete:
					e.put(secretKind, "stuck", "ConfigMap/boss")
				case http.MethodPatch:
					e.put(secretKind, "stuck", "ConfigMap/boss", "ConfigMap/staying")
				case http.MethodGet: // an owner that nobody has seen
					e.put(configMapKind, "stuck", "Secret/never")
				}
				e.run(4, func(context.Context) {
					e.api.Remove(key(configMapKind, "boss"))
					<-time.After(time.Second)
					if left := e.there(configMapKind, "leaf"); len(left) > 0 {
						t.Error("an object of another kind waits")
					}
					<-time.After(requestTimeout)
					mu.Lock()
					defer mu.Unlock()
					if len(ended) == 0 || slices.Max(ended) != requestTimeout {
						t.Errorf("requests that hang ended after %v, want %s", ended, requestTimeout)
					}
				})
			})
		})
	}
}

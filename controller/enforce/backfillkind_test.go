package enforce

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/live"
)

// failingServer is a server whose ConfigMaps answer every change as said, with more of them than
// wait at once, and one Secret. Policies are about both.
func failingServer(t *testing.T, answer func() *apitest.Reply) (*apitest.Server, int) {
	t.Helper()
	api := apitest.New()
	n := 3 * request.DefaultConcurrency
	for i := range n {
		api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%03d, namespace: shop}}", i))
	}
	api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop}}")
	api.Put("deletionpolicies", delpol("p", "configmaps, secrets", "propagation: {default: Orphan}"))
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Method == "PATCH" && strings.Contains(r.Path, "/configmaps/") {
			return answer()
		}
		return nil
	})
	return api, n
}

// One broken kind stops nothing: it is given up, the next ones are done, and the next pass finds it
// well.
func TestBackFillGoesOnAfterAFailingKind(t *testing.T) {
	var well atomic.Bool
	api, n := failingServer(t, func() *apitest.Reply {
		if well.Load() {
			return nil
		}
		return apitest.Refuse(429, "TooManyRequests", "busy")
	})
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state)
		began := time.Now()
		err := whole(t.Context(), b)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it was given up after %s", took)
		}
		if got := finalizersOf(api, "secrets/shop/other"); got != "[weir.dev/propagation]" {
			t.Errorf("the Secret has %s", got)
		}
		if now, _ := b.board.read(); now.counted.waits != "requests about configmaps are answered 429" {
			t.Errorf("it says %q", now.counted.waits)
		}
		if err == nil || !strings.Contains(err.Error(), "put off: requests about configmaps are answered 429") {
			t.Errorf("error %v", err)
		}
		if now := stateOfFill(b); now.done || now.of["p"].carrying != 1 {
			t.Errorf("done %t, %+v", now.done, now.of)
		}
		well.Store(true)
		if err := whole(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if now := stateOfFill(b); !now.done || now.of["p"].carrying != int64(n+1) {
			t.Errorf("done %t, %+v", now.done, now.of)
		}
	})
}

// A list counts as any other request does: of a kind that answers 429 others are told, and the next
// list waits until it has rested.
func TestBackFillListsWhenItIsTheKindsTurn(t *testing.T) {
	api := apitest.New()
	api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop}}")
	api.Put("deletionpolicies", delpol("p", "configmaps", "propagation: {default: Orphan}"))
	var well atomic.Bool
	var lists atomic.Int32
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Method != "GET" || !strings.HasSuffix(r.Path, "/configmaps") {
			return nil
		}
		if lists.Add(1); well.Load() {
			return nil
		}
		return apitest.Refuse(429, "TooManyRequests", "busy")
	})
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state)
		if err := whole(t.Context(), b); err == nil || !strings.Contains(err.Error(), "busy") {
			t.Errorf("error %v", err)
		}
		if got := b.requests.Limiter.Failing(fixture.ConfigMaps); got != "requests about configmaps are answered 429" {
			t.Errorf("trouble: %q", got)
		}
		well.Store(true)
		began := time.Now()
		if err := whole(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took == 0 || lists.Load() != 2 || b.requests.Limiter.Failing(fixture.ConfigMaps) != "" {
			t.Errorf("listed %d times, the second after %s; failing: %q", lists.Load(), took, b.requests.Limiter.Failing(fixture.ConfigMaps))
		}
		if got := finalizersOf(api, "configmaps/shop/one"); got != "[weir.dev/propagation]" {
			t.Errorf("finalizers %s", got)
		}
	})
}

// A kind that is only slow holds up no other, and is done in the end.
func TestBackFillOfASlowKindGoesOn(t *testing.T) {
	api, n := failingServer(t, func() *apitest.Reply {
		<-time.After(2 * time.Second)
		return nil
	})
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state)
		began := time.Now()
		defer begin(t, b)()
		<-time.After(20 * time.Second)
		if got := finalizersOf(api, "secrets/shop/other"); got != "[weir.dev/propagation]" {
			t.Errorf("after twenty seconds the Secret has %s", got)
		}
		for now := stateOfFill(b); !now.done; now = stateOfFill(b) {
			<-now.news
		}
		if took := time.Since(began); took > 10*time.Duration(n)*time.Second || stateOfFill(b).of["p"].carrying != int64(n+1) {
			t.Errorf("%+v after %s", stateOfFill(b), took)
		}
	})
}

// An object that cannot carry the finalizer stays so, and a user can make one: its kind is not
// listed every ten seconds for it. What may pass by itself is looked at again as soon as ever.
func TestObjectsThatCannotCarryTheFinalizerAreLookedAtNowAndThen(t *testing.T) {
	for name, c := range map[string]struct {
		answer *apitest.Reply
		want   []time.Duration
	}{
		"it is invalid":    {apitest.Refuse(422, "Invalid", "annotations: Too long"), []time.Duration{backFillEvery, backFillEvery}},
		"Weir is refused":  {apitest.Refuse(403, "Forbidden", "no"), []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}},
		"it has no answer": {apitest.Refuse(500, "InternalError", "no"), []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			fixture.PutConfigMap(api, "full", kept)
			fixture.PutConfigMap(api, "well", kept)
			api.Put("deletionpolicies", keptOnly)
			inForce(t, api, func(t *testing.T, state *live.State) {
				lists := make(chan time.Time, 100)
				api.Intercept(func(r apitest.Request) *apitest.Reply {
					switch {
					case r.Method == "GET" && strings.HasSuffix(r.Path, "/configmaps"):
						lists <- time.Now()
					case r.Method == "PATCH" && strings.HasSuffix(r.Path, "/full"):
						return c.answer
					}
					return nil
				})
				b := filler(t, api, state)
				end := begin(t, b)
				defer end()
				before := <-lists
				for i, want := range c.want {
					at := <-lists
					if after := at.Sub(before).Round(time.Second); after != want {
						t.Errorf("list %d came after %s, want %s", i+2, after, want)
					}
					before = at
				}
				if got := finalizersOf(api, "configmaps/shop/well"); got != "[weir.dev/propagation]" {
					t.Errorf("the other object has %s", got)
				}
			})
		})
	}
}

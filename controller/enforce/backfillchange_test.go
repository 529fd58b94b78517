package enforce

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/live"
)

// begin runs a back-fill until the test ends, and returns when it has nothing to do.
func begin(t *testing.T, b *backFill) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.run(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// inTeam is a policy about ConfigMaps in namespaces of a team.
var inTeam = strings.Replace(keptOnly, "objectSelector: {matchLabels: {kept: 'yes'}}", "namespaceSelector: {matchLabels: {team: a}}", 1)

// TestAKindThatFailsHasNoOtherLookedAtAgain: it is tried every few seconds for as long as it fails,
// and what all other kinds hold is listed when their time has come, as ever.
func TestAKindThatFailsHasNoOtherLookedAtAgain(t *testing.T) {
	for name, fails := range map[string]func(r apitest.Request) bool{
		"of one object":     func(r apitest.Request) bool { return r.Method == "PATCH" && strings.HasSuffix(r.Path, "/secrets/s") },
		"of each list":      func(r apitest.Request) bool { return r.Method == "GET" && r.Path == "/api/v1/secrets" },
		"of each and every": func(r apitest.Request) bool { return strings.Contains(r.Path, "/secrets") },
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			fixture.PutConfigMap(api, "c", "")
			api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}}")
			api.Put("deletionpolicies", delpol("p", "configmaps, secrets", "propagation: {default: Orphan}"))
			var lists [2]atomic.Int32 // of ConfigMaps, of Secrets
			var well atomic.Bool
			api.Intercept(func(r apitest.Request) *apitest.Reply {
				for i, kind := range []string{"configmaps", "secrets"} {
					if r.Method == "GET" && r.Path == "/api/v1/"+kind {
						lists[i].Add(1)
					}
				}
				if fails(r) && !well.Load() {
					return apitest.Refuse(403, "Forbidden", "not for you")
				}
				return nil
			})
			inForce(t, api, func(t *testing.T, state *live.State) {
				b := filler(t, api, state)
				defer begin(t, b)()
				elapse(backFillEvery / 2)
				if of, secrets := lists[0].Load(), lists[1].Load(); of != 1 || secrets < 5 {
					t.Errorf("ConfigMaps were listed %d times, Secrets, which fail, %d times; want 1, and every %s", of, secrets, backFillRetry)
				}
				if now := stateOfFill(b); now.done {
					t.Error("it says that it is done")
				}
				fixture.PutConfigMap(api, "late", "") // while the webhook was away
				b.store.Apply(graph.Observed{Object: &graph.Object{Kind: fixture.ConfigMaps, UID: fixture.UIDOf("late"), Namespace: "shop", Name: "late", ResourceVersion: "9"}})
				elapse(backFillEvery)
				if got := finalizersOf(api, "configmaps/shop/late"); got != "[weir.dev/propagation]" || lists[0].Load() > 3 {
					t.Errorf("what came later has %s after %d lists", got, lists[0].Load())
				}
				well.Store(true)
				elapse(time.Minute)
				if now := stateOfFill(b); !now.done || now.of["p"] != (held{3, 3}) {
					t.Errorf("when all is well: done %t, %v", now.done, now.of)
				}
			})
		})
	}
}

// TestNamespaceThatWasNotSeenIsReadForBackFill: an object whose namespace the watch has not shown
// yet would count as one that no policy is about, and the pass as complete.
func TestNamespaceThatWasNotSeenIsReadForBackFill(t *testing.T) {
	api := apitest.New()
	api.Put("deletionpolicies", inTeam)
	inForce(t, api, func(t *testing.T, state *live.State) {
		var readable atomic.Bool
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/api/v1/namespaces" || r.Path == "/api/v1/namespaces/shop" && !readable.Load() {
				return apitest.Refuse(500, "InternalError", "not now")
			}
			return nil
		})
		api.Cut()
		settlePolicies(state)
		api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}")
		fixture.PutConfigMap(api, "c", "")
		b := filler(t, api, state)
		if err := whole(t.Context(), b); err == nil || err.Error() != "judge configmaps shop/c: read namespace shop: not now" {
			t.Errorf("error %v", err)
		}
		if now := stateOfFill(b); now.done {
			t.Error("it is complete, and one object could not be judged")
		}
		readable.Store(true)
		if err := whole(t.Context(), b); err != nil {
			t.Error(err)
		}
		if got := finalizersOf(api, "configmaps/shop/c"); got != "[weir.dev/propagation]" {
			t.Errorf("it has %s", got)
		}
	})
}

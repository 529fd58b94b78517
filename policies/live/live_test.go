package live

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
)

func policy(name, priority string) string {
	return fmt.Sprintf(`
apiVersion: weir.dev/v1beta1
kind: DeletionPolicy
metadata: {name: %s}
spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}]}, priority: %s, protection: {confirmation: Required}}`, name, priority)
}

// fixture is a State that runs, on the clock of a bubble.
type fixture struct {
	*testing.T
	api   *apitest.Server
	state *State
	log   *lines
}

// lines are those of a log, which many write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(line + "\n")
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// inFixture runs a test with a State that follows an API server and, if dir is not empty, files.
func inFixture(t *testing.T, dir string, before func(*apitest.Server), test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{T: t, api: apitest.New(), log: &lines{}}
		if before != nil {
			before(b.api)
		}
		log := logr.New(funcr.New(func(_, args string) { b.log.add(args) }, funcr.Options{}).GetSink())
		state, err := New(Options{Config: b.api.Config(), Dir: dir, Self: []string{"weir"}, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		b.state = state
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- state.Run(ctx) }()
		test(b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// settle waits until nothing more happens within the time that changes are gathered.
func (b *fixture) settle() {
	b.Helper()
	for range 3 {
		<-time.After(gather)
		synctest.Wait()
	}
}

// inForce are the names of the policies in force.
func (b *fixture) inForce() []string {
	var out []string
	for _, s := range b.state.Set().Statuses() {
		if s.Ready {
			out = append(out, s.Policy.Name)
		}
	}
	return out
}

func (b *fixture) wantInForce(when string, names ...string) {
	b.Helper()
	if diff := cmp.Diff(names, b.inForce()); diff != "" {
		b.Errorf("policies in force %s (-want +got):\n%s", when, diff)
	}
}

func fired(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestReadyOnceEverythingHasBeenRead(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"policies":   {"/apis/weir.dev/v1beta1/drainpolicies", "waiting for the first list of drainpolicies.weir.dev"},
		"namespaces": {"/api/v1/namespaces", "waiting for the first list of namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			var down atomic.Bool
			down.Store(true)
			inFixture(t, "", func(s *apitest.Server) {
				s.Put("deletionpolicies", policy("one", "0"))
				s.Intercept(func(r apitest.Request) *apitest.Reply {
					if down.Load() && r.Path == c.path {
						return apitest.Refuse(503, "ServiceUnavailable", "starting")
					}
					return nil
				})
			}, func(b *fixture) {
				b.settle()
				if err := b.state.Ready(); err == nil || err.Error() != c.want {
					b.Errorf("ready: %v, want %q", err, c.want)
				}
				b.wantInForce("before everything has been read")
				changed := b.state.Changed()
				down.Store(false)
				<-changed
				if err := b.state.Ready(); err != nil {
					b.Errorf("not ready after all: %v", err)
				}
				b.wantInForce("then", "one")
			})
		})
	}
}

func TestChangesComeIntoForce(t *testing.T) {
	inFixture(t, "", func(s *apitest.Server) { s.Put("deletionpolicies", policy("one", "0")) }, func(b *fixture) {
		b.settle()
		b.wantInForce("at first", "one")
		changed := b.state.Changed()
		b.api.Put("deletionpolicies", policy("two", "0"))
		b.api.Put("deletionpolicies", policy("three", "0"))
		b.settle()
		if !fired(changed) {
			b.Error("nobody was told")
		}
		b.wantInForce("after two came", "one", "three", "two")
		if n := strings.Count(b.log.String(), "policies are in force"); n != 2 {
			b.Errorf("compiled %d times, want 2: what comes together is compiled together:\n%s", n, b.log)
		}
		b.api.Remove("deletionpolicies.weir.dev/one")
		b.settle()
		b.wantInForce("after one went", "three", "two")
		if b.state.Object(policies.PolicyKey{Kind: "DeletionPolicy", Name: "one"}) != nil {
			b.Error("what went is still there")
		}
	})
}

func TestStatusIsSeenButCompilesNothing(t *testing.T) {
	inFixture(t, "", func(s *apitest.Server) { s.Put("deletionpolicies", policy("one", "0")) }, func(b *fixture) {
		b.settle()
		changed, set := b.state.Changed(), b.state.Set()
		b.api.Put("deletionpolicies", policy("one", "0")+"\nstatus: {matched: 3}")
		b.settle()
		if fired(changed) || b.state.Set() != set {
			b.Error("a change of the status made another set")
		}
		status, _ := b.state.Object(policies.PolicyKey{Kind: "DeletionPolicy", Name: "one"})["status"].(map[string]any)
		if fmt.Sprint(status) != "map[matched:3]" {
			b.Errorf("the status is %v", status)
		}
		b.api.Put("deletionpolicies", policy("one", "5"))
		b.settle()
		if !fired(changed) {
			b.Error("a change of the spec made no other set")
		}
	})
}

func TestListAfterALostWatchFindsWhatWasMissed(t *testing.T) {
	inFixture(t, "", func(s *apitest.Server) {
		s.Put("deletionpolicies", policy("stays", "0"))
		s.Put("deletionpolicies", policy("goes", "0"))
	}, func(b *fixture) {
		b.settle()
		var missing atomic.Bool
		b.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if missing.Load() {
				return apitest.Refuse(503, "ServiceUnavailable", "away")
			}
			return nil
		})
		missing.Store(true)
		b.api.Cut()
		b.settle()
		b.api.Remove("deletionpolicies.weir.dev/goes")
		b.api.Put("deletionpolicies", policy("comes", "0"))
		b.settle()
		b.wantInForce("while the API server is away", "goes", "stays")
		changed := b.state.Changed()
		missing.Store(false)
		<-changed
		b.settle()
		b.wantInForce("when it is back", "comes", "stays")
	})
}

func TestKindsThatAreNotInstalledHoldUpNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", policy("file", "0"))
	var installed atomic.Bool
	inFixture(t, dir, func(s *apitest.Server) {
		s.Intercept(func(r apitest.Request) *apitest.Reply {
			if !installed.Load() && strings.HasPrefix(r.Path, "/apis/weir.dev/") {
				return apitest.Refuse(404, "NotFound", "the server could not find the requested resource")
			}
			return nil
		})
	}, func(b *fixture) {
		b.settle()
		b.wantInForce("without the kinds", "file")
		if n := strings.Count(b.log.String(), "the kind is not installed"); n != 3 {
			b.Errorf("said %d times that a kind is not installed, want once for each of 3:\n%s", n, b.log)
		}
		installed.Store(true)
		b.api.Put("deletionpolicies", policy("object", "0"))
		<-b.state.Changed()
		b.settle()
		b.wantInForce("with them", "file", "object")
		installed.Store(false)
		b.api.Cut()
		<-b.state.Changed()
		b.wantInForce("when they are taken away", "file")
	})
}

func TestNamespaceNowAsksOnlyForWhatWasNotSeen(t *testing.T) {
	inFixture(t, "", func(s *apitest.Server) {
		s.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	}, func(b *fixture) {
		b.settle()
		b.api.Requests()
		if ns, err := b.state.NamespaceNow(b.Context(), "shop"); err != nil || ns == nil {
			b.Errorf("shop: %v, %v", ns, err)
		}
		if got := b.api.Requests(); len(got) > 0 {
			b.Errorf("asked for what is known: %v", got)
		}
		if ns, err := b.state.NamespaceNow(b.Context(), "other"); err != nil || ns != nil {
			b.Errorf("one that is not there: %v, %v", ns, err)
		}
		b.api.Intercept(func(r apitest.Request) *apitest.Reply {
			switch r.Path {
			case "/api/v1/namespaces/fresh": // there, and the watch has not told yet
				return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "v1", "kind": "Namespace",
					"metadata": map[string]any{"name": "fresh"}}}
			case "/api/v1/namespaces/broken":
				return apitest.Refuse(500, "InternalError", "etcd is away")
			}
			return nil
		})
		if ns, err := b.state.NamespaceNow(b.Context(), "fresh"); err != nil || ns == nil {
			b.Errorf("one that was not seen yet: %v, %v", ns, err)
		}
		if _, err := b.state.NamespaceNow(b.Context(), "broken"); err == nil ||
			!strings.HasPrefix(err.Error(), "read namespace broken: ") {
			b.Errorf("one that cannot be read: %v", err)
		}
	})
}

// TestWeirItselfIsNotJudged by what is asked for; by what guards it is, as every collector.
func TestWeirItselfIsNotJudged(t *testing.T) {
	inFixture(t, "", func(s *apitest.Server) { s.Put("deletionpolicies", policy("one", "0")) }, func(b *fixture) {
		b.settle()
		for user, want := range map[string]bool{"weir": true, "alice": false} {
			d := b.state.Set().Decide(policies.Question{Operation: policies.Delete, User: policies.User{Name: user},
				Resource: Resource("DeletionPolicy").GroupVersion().WithResource("x"), OldObject: map[string]any{}})
			if !d.Allowed {
				b.Errorf("%s may not delete what no policy is about", user)
			}
			q := policies.Question{Operation: policies.Delete, Asked: policies.WebhookDelete, User: policies.User{Name: user},
				OldObject: map[string]any{}}
			q.Resource.Group, q.Resource.Version, q.Resource.Resource = "apps", "v1", "deployments"
			if d := b.state.Set().Decide(q); d.Allowed != want {
				b.Errorf("%s may delete a protected object: %t, want %t", user, d.Allowed, want)
			}
		}
	})
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

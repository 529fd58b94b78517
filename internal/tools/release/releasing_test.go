package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// lists counts how often each kind is listed.
type lists map[string]int

func (l lists) reply(r apitest.Request) *apitest.Reply {
	if r.Method == "GET" {
		if i := strings.LastIndex(r.Path, "/"); r.Path[i:] == "/namespaces" || r.Path[i:] == "/configmaps" || r.Path[i:] == "/deployments" {
			l[r.Path[i+1:]]++
		}
	}
	return nil
}

// Where something was is looked at again. What gets the finalizer from a webhook later is found
// after the window (TestWhatIsStoredAfterTheWebhooksAreGoneIsReleased).
func TestHowOftenAKindIsLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		configured, dryRun bool
		want               lists
	}{
		"no webhook was there":      {false, false, lists{"configmaps": 2, "deployments": 1, "namespaces": 1}},
		"webhooks were there":       {true, false, lists{"configmaps": 2, "deployments": 1, "namespaces": 1}},
		"a dry run changes nothing": {true, true, lists{"configmaps": 1, "deployments": 1, "namespaces": 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			seen := lists{}
			api := newAPI(func(r apitest.Request) *apitest.Reply {
				mu.Lock()
				defer mu.Unlock()
				return seen.reply(r)
			})
			if c.configured {
				putConfiguration(api, "Validating")
			}
			put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
			put(api, "configmaps", "ConfigMap", "others", "example.com/backup")
			got, err := (&Release{Config: api.Config(), DryRun: c.dryRun}).Run(t.Context())
			if err != nil || got.Seen != 2 || got.Looked != 3 || got.Released != 1 {
				t.Errorf("%s: %+v, %v: no object and no kind counts twice", name, got, err)
			}
			if diff := cmp.Diff(c.want, seen); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// What cannot be done at the first look may be possible a moment later, and then nothing has
// failed.
func TestAFailureThatPassesIsNone(t *testing.T) {
	for _, refused := range []string{"PATCH", "GET"} {
		synctest.Test(t, func(t *testing.T) {
			began, times := time.Now(), 0
			var mu sync.Mutex
			api := newAPI(func(r apitest.Request) *apitest.Reply {
				mu.Lock()
				defer mu.Unlock()
				if r.Method == refused && strings.Contains(r.Path, "/configmaps") && times < 2 {
					times++
					return apitest.Refuse(403, "Forbidden", "not yet")
				}
				return nil
			})
			put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
			got, err := (&Release{Config: api.Config()}).Run(t.Context())
			if err != nil || got.Released != 1 || got.Failed != 0 || len(got.Failures) != 0 || finalizersOf(api, "configmaps/shop/a") != nil {
				t.Errorf("%s: %+v, %v", refused, got, err)
			}
			if took := time.Since(began); took != 3*releasePause {
				t.Errorf("%s: took %s, want a pause after each of three looks", refused, took)
			}
		})
	}
}

// With the finalizer goes when it came, and nothing else.
func TestWhatAReleaseTakesOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(nil)
		api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: armed, namespace: shop, finalizers: ["+v1beta1.Finalizer+"], annotations: {"+v1beta1.ArmedAtAnnotation+": x, other: kept}}}")
		api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: going, namespace: shop, deletionTimestamp: '2020-01-01T00:00:00Z', finalizers: ["+v1beta1.Finalizer+", a.b/c]}}")
		var found []string
		got, err := (&Release{Config: api.Config(), Found: func(what string) { found = append(found, what) }}).Run(t.Context())
		if err != nil || got.Released != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		slices.Sort(found)
		if diff := cmp.Diff([]string{"configmaps shop/armed", "configmaps shop/going (terminating)"}, found); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		metadata, _ := api.Get("configmaps/shop/armed")["metadata"].(map[string]any)
		if diff := cmp.Diff(map[string]any{"other": "kept"}, metadata["annotations"]); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		if left := fmt.Sprint(finalizersOf(api, "configmaps/shop/going")); left != "[a.b/c]" {
			t.Errorf("the other finalizer decides how it goes on: %s", left)
		}
	})
}

// An object that is gone, or another by now, has nothing that could be taken off, and is no
// failure.
func TestAnObjectThatGoesMeanwhileIsNeitherReleasedNorFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var api *apitest.Server
		api = newAPI(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" {
				api.Remove("configmaps/shop/a")
			}
			return nil
		})
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
		if got, err := (&Release{Config: api.Config()}).Run(t.Context()); err != nil || got.Released != 0 || got.Failed != 0 || len(got.Failures) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// An aggregated API that is down may hold objects that carry the finalizer: whoever uninstalls must
// know.
func TestWhatDoesNotAnswerToDiscoveryIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			if r.Path == "/apis/apps/v1" {
				return apitest.Refuse(503, "ServiceUnavailable", "down")
			}
			return nil
		})
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
		got, err := (&Release{Config: api.Config()}).Run(t.Context())
		want := Released{Kinds: 2, Looked: 2, Seen: 1, Released: 1, Failures: []string{"discover apps/v1: it does not answer, so what it serves was not looked at"}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// A release of a large cluster takes minutes: what it has done is told when a kind was looked at.
func TestProgressIsToldUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(nil)
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
		config := api.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/deployments") {
					<-time.After(5 * time.Second)
				}
				return next.RoundTrip(r)
			})
		})
		var told []Released
		r := Release{Config: config, Progress: func(now Released) { told = append(told, now) }}
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := (Released{Kinds: 3, Looked: 3, Seen: 1, Released: 1}); len(told) != 2 || told[0].Looked == 0 || !cmp.Equal(told[1], want) {
			t.Errorf("told %+v, want the last to be %+v", told, want)
		}
	})
}

// Whoever pulls the plug between two looks is told the same as in one.
func TestAReleaseThatIsInterruptedBetweenTwoLooksSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		signal := errors.New("interrupt")
		api := newAPI(nil)
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
		time.AfterFunc(releasePause/2, func() { stop(signal) })
		began := time.Now()
		got, err := (&Release{Config: api.Config()}).Run(ctx)
		if !errors.Is(err, signal) || !strings.Contains(err.Error(), "run it again to go on") || got.Released != 1 || time.Since(began) != releasePause/2 {
			t.Errorf("%+v after %s: %v", got, time.Since(began), err)
		}
	})
}

// Many objects are released at once, and are told of one at a time.
func TestObjectsAreToldOfOneAtATime(t *testing.T) {
	api := newAPI(nil)
	const n = 40
	for i := range n {
		put(api, "configmaps", "ConfigMap", fmt.Sprint("a", i), v1beta1.Finalizer)
		put(api, "deployments", "Deployment", fmt.Sprint("a", i), v1beta1.Finalizer)
	}
	found := map[string]bool{}            // without a lock: -race sees a call that is beside another
	synctest.Test(t, func(t *testing.T) { // the pauses cost nothing
		r := Release{Config: api.Config(), Found: func(what string) { found[what] = true }}
		if got, err := r.Run(t.Context()); err != nil || got.Released != 2*n || len(found) != 2*n {
			t.Errorf("%+v, told of %d, %v", got, len(found), err)
		}
	})
}

// A request may be under way for 35 s that had got the finalizer before the webhook configurations
// went, and store its object then.
func TestWhatIsStoredAfterTheWebhooksAreGoneIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		configured bool
		window     time.Duration
		waits      bool
	}{
		"webhooks were there":                   {true, 35 * time.Second, true},
		"webhooks were there, and it is enough": {true, 0, false},
		"no webhook was there":                  {false, 35 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newAPI(nil)
				if c.configured {
					putConfiguration(api, "Mutating")
				}
				late := time.AfterFunc(34*time.Second, func() { put(api, "configmaps", "ConfigMap", "late", v1beta1.Finalizer) })
				defer late.Stop()
				put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
				began := time.Now()
				got, err := (&Release{Config: api.Config(), Window: c.window}).Run(t.Context())
				if waited := time.Since(began) >= 35*time.Second; err != nil || waited != c.waits {
					t.Errorf("%v after %s, waits %t", err, time.Since(began), c.waits)
				}
				if c.waits && (got.Released != 2 || len(finalizersOf(api, "configmaps/shop/late")) > 0) {
					t.Errorf("%+v, and the object that came late has %v", got, finalizersOf(api, "configmaps/shop/late"))
				}
				if got.Seen != 1 || got.Looked != 3 || len(got.Failures) > 0 {
					t.Errorf("%+v: what is looked at again does not count again", got)
				}
			})
		})
	}
}

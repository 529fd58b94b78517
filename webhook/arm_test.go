package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// testArmer arms with a window of 35 s, on an API server without policies.
func testArmer(t *testing.T, api *apitest.Server) *armer {
	t.Helper()
	state, err := live.New(live.Options{Config: api.Config()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := newArmer(Options{Config: api.Config(), Policies: state, ArmingWindow: 35 * time.Second,
		Log: logr.Discard()}, testMetrics(t))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// armedAgo is a DELETE of an object that was armed so long ago; 0 for one that was armed when it
// was made.
func armedAgo(name string, ago time.Duration) *policies.Question {
	meta := map[string]any{"name": "one", "namespace": "shop", "uid": "uid-one", "finalizers": []any{v1beta1.Finalizer}}
	now := time.Now()
	if ago != 0 {
		meta["annotations"] = map[string]any{v1beta1.ArmedAtAnnotation: policies.ArmedAt(now.Add(-ago))}
	}
	return &policies.Question{Operation: policies.Delete, Resource: configMaps, Namespace: "shop", Name: name, Now: now,
		OldObject: map[string]any{"metadata": meta}}
}

var enforced = policies.Decision{Allowed: true, Enforced: true, Propagation: v1beta1.Orphan, By: "kept"}

func TestWindowOfAFreshFinalizer(t *testing.T) {
	for name, c := range map[string]struct {
		q    *policies.Question
		d    policies.Decision
		want time.Duration
	}{
		"armed when it was made":         {armedAgo("one", 0), enforced, 0},
		"armed just now":                 {armedAgo("one", 1), enforced, 35*time.Second - 1},
		"armed a while ago":              {armedAgo("one", 20*time.Second), enforced, 15 * time.Second},
		"about to be let through":        {armedAgo("one", 35*time.Second-1), enforced, 1},
		"let through":                    {armedAgo("one", 35*time.Second), enforced, 0},
		"armed by a clock that is ahead": {armedAgo("one", -5*time.Second), enforced, 35 * time.Second},
		"not enforced":                   {armedAgo("one", 1), policies.Decision{Allowed: true}, 0},
		"of a collection":                {armedAgo("", 20*time.Second), enforced, 41 * time.Second},
		"of a collection, let through":   {armedAgo("", 61*time.Second), enforced, 0},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			a := testArmer(t, api)
			d, wait, err := a.hold(t.Context(), c.q, c.d)
			if (wait-c.want).Abs() > time.Second || (wait == 0) != (c.want == 0) || err != nil || d.Allowed != (wait == 0) ||
				(d.Message == "") != (wait == 0) {
				t.Errorf("wait %s (%+v, %v), want %s", wait, d, err, c.want)
			}
			if got := api.Requests(); len(got) > 0 {
				t.Errorf("asked the API server: %v", got)
			}
		})
	}
}

// TestWhyADeleteWaitsIsTold: by the policy that needs the finalizer, and what it needs it for.
func TestWhyADeleteWaitsIsTold(t *testing.T) {
	for want, d := range map[string]policies.Decision{
		`is deleted with propagation Orphan (DeletionPolicy "kept")`: enforced,
		`is deleted, and held if too much would also be deleted (DeletionPolicy "most")`: {
			BrakedBy: "most", Wanted: policies.Wanted{By: "most"}},
		`is recorded, and then deleted (DeletionPolicy "undo")`: {Wanted: policies.Wanted{By: "undo"}},
	} {
		if got := held(armedAgo("one", 1), d, time.Second).Message; !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}

// One replica writes when the finalizer was added, and another compares: both by the API server's
// clock, however much their own are off.
func TestArmingGoesByTheAPIServersClock(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Minute, time.Minute} {
		api := apitest.New()
		api.Ahead = ahead
		withFixtureOf(t, api, someFacts(), func(b *fixture) {
			b.policies(kept)
			put := func(metadata string) {
				b.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: uid-one, labels: {kept: "yes"}`+metadata+"}}")
			}
			refused := func(metadata string) bool {
				_, body := b.ask("delete", `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: alice},
  oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: uid-one, labels: {kept: "yes"}`+metadata+"}}}")
				return strings.Contains(string(body), `"code":429`)
			}
			put("")
			if !refused("") {
				t.Error("it is not armed")
			}
			meta, _ := b.api.Get("configmaps/shop/one")["metadata"].(map[string]any)
			annotations, _ := meta["annotations"].(map[string]any)
			at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(annotations[v1beta1.ArmedAtAnnotation]))
			if off := at.Sub(time.Now().Add(ahead)).Abs(); err != nil || off > 2*time.Second {
				t.Errorf("armed %s off the API server's clock (%v)", off, err)
			}
			for ago, held := range map[time.Duration]bool{5 * time.Second: true, 2 * DefaultArmingWindow: false} {
				metadata := fmt.Sprintf(`, finalizers: [weir.dev/propagation], annotations: {weir.dev/armed-at: %q}`,
					policies.ArmedAt(time.Now().Add(ahead-ago)))
				if put(metadata); refused(metadata) != held {
					t.Errorf("the clock is %s off: armed %s ago, held: %t", ahead, ago, !held)
				}
			}
		})
	}
}

func TestDryRunNeitherArmsNorWaits(t *testing.T) {
	api := apitest.New()
	for name, d := range map[string]policies.Decision{"armed": enforced,
		"not armed": {Allowed: true, Enforced: true, Arm: true,
			Wanted: policies.Wanted{Finalizers: []string{v1beta1.Finalizer}}}} {
		q := armedAgo("one", 1)
		q.DryRun = true
		if d, wait, err := testArmer(t, api).hold(t.Context(), q, d); wait != 0 || !d.Allowed || err != nil {
			t.Errorf("%s: wait %s, %+v, %v", name, wait, d, err)
		}
	}
	if got := api.Requests(); len(got) > 0 {
		t.Errorf("asked the API server: %v", got)
	}
}

// Without the finalizer the DELETE would go another way: it must not be let through.
func TestFinalizerThatCannotBeAddedIsAnError(t *testing.T) {
	for method, want := range map[string]string{
		"PATCH": `hold configmaps back until it can be deleted as DeletionPolicy "kept" says: change the finalizers of configmaps shop/one: no`,
		"GET":   `hold configmaps back until it can be deleted as DeletionPolicy "kept" says: read configmaps "one": no`,
	} {
		withFixture(t, func(b *fixture) {
			b.policies(kept)
			b.api.Put("configmaps",
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {kept: "yes"}}}`)
			b.api.Intercept(func(r apitest.Request) *apitest.Reply {
				if r.Method == method && strings.HasSuffix(r.Path, "/one") {
					return apitest.Refuse(403, "Forbidden", "no")
				}
				return nil
			})
			code, body := b.ask("delete", `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: alice},
  oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: uid-one, labels: {kept: "yes"}}}}`)
			if code != 500 || string(body) != want+"\n" {
				b.Errorf("%d %s\nwant %s", code, body, want)
			}
		})
	}
}

// Whoever may edit an object can fill it until nothing more can be added. Under Ignore an error
// would let its DELETE through, without the finalizer.
func TestObjectThatCannotCarryTheFinalizerIsNotDeleted(t *testing.T) {
	withFixture(t, func(b *fixture) {
		b.policies(kept)
		b.api.Put("configmaps",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {kept: "yes"}}}`)
		b.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" {
				return apitest.Refuse(422, "Invalid", "annotations: Too long")
			}
			return nil
		})
		code, body := b.ask("delete", `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: alice},
  oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: uid-one, labels: {kept: "yes"}}}}`)
		for _, want := range []string{`"allowed":false`, `"code":403`, `configmaps \"one\" cannot be deleted as DeletionPolicy \"kept\" says: it needs the finalizer weir.dev/propagation`,
			"annotations: Too long. Make the object smaller"} {
			if code != 200 || !strings.Contains(string(body), want) {
				b.Errorf("%d %s\nwant %s", code, body, want)
			}
		}
	})
}

func TestWebhookNeedsItsParts(t *testing.T) {
	if _, err := New(Options{}); err == nil ||
		err.Error() != "make a webhook: an API server, policies and a token are needed" {
		t.Errorf("error %v", err)
	}
}

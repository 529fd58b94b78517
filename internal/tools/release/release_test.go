package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// newAPI is an API server that serves ConfigMaps and Deployments, and what a Release looks for
// besides.
func newAPI(answer func(apitest.Request) *apitest.Reply) *apitest.Server {
	api := apitest.New()
	all := metav1.Verbs{"get", "list", "watch", "delete", "patch"}
	served := map[string][]metav1.APIResource{
		"/api/v1": {{Name: "namespaces", Kind: "Namespace", Verbs: all}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
			{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}}}, // which cannot be listed
		"/apis/apps/v1": {{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: all}},
	}
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if answer != nil {
			if reply := answer(r); reply != nil {
				return reply
			}
		}
		switch list, ok := served[r.Path]; {
		case strings.HasSuffix(r.Path, "/leases"): // of its own kind, for a typed client
			items := []any{}
			for _, namespace := range []string{"shop", "weir-system"} {
				all := !strings.Contains(r.Path, "/namespaces/")
				if held := api.Get("leases.coordination.k8s.io/" + namespace + "/" + LeaseName); held != nil && (all || strings.Contains(r.Path, "/"+namespace+"/")) {
					items = append(items, held)
				}
			}
			return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": items}}
		case r.Path == "/api":
			return &apitest.Reply{Code: 200, Body: metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}}
		case r.Path == "/apis":
			v := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
			return &apitest.Reply{Code: 200, Body: metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
				Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}}}
		case ok:
			gv := strings.TrimPrefix(strings.TrimPrefix(r.Path, "/apis/"), "/api/")
			return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: list}}
		}
		return nil
	})
	return api
}

// put makes an object that carries finalizers.
func put(api *apitest.Server, resource, kind, name string, finalizers ...string) {
	version := "v1"
	if kind == "Deployment" {
		version = "apps/v1"
	}
	list, _ := json.Marshal(finalizers)
	api.Put(resource, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: shop, finalizers: %s}}", version, kind, name, list))
}

func finalizersOf(api *apitest.Server, key string) []any {
	metadata, _ := api.Get(key)["metadata"].(map[string]any)
	list, _ := metadata["finalizers"].([]any)
	return list
}

// writes are the requests that change something.
func writes(api *apitest.Server) (out []string) {
	for _, r := range api.Requests() {
		if r.Method != "GET" {
			out = append(out, r.Method+" "+r.Path)
		}
	}
	return out
}

func TestReleaseTakesWeirsFinalizerOffAndLeavesThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(nil)
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer, "example.com/backup")
		put(api, "configmaps", "ConfigMap", "others", "example.com/backup")
		put(api, "deployments", "Deployment", "web", v1beta1.Finalizer)
		var found []string
		r := Release{Config: api.Config(), Found: func(what string) { found = append(found, what) }}
		got, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Released{Kinds: 3, Looked: 3, Seen: 3, Released: 2}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Sort(found)
		if diff := cmp.Diff([]string{"configmaps shop/a", "deployments.apps shop/web"}, found); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		for key, want := range map[string]string{"configmaps/shop/a": "[example.com/backup]", "configmaps/shop/others": "[example.com/backup]", "deployments.apps/shop/web": "[]"} {
			if left := fmt.Sprint(finalizersOf(api, key)); left != want {
				t.Errorf("%s keeps %s, want %s", key, left, want)
			}
		}
	})
}

// While they are there, what the finalizer is taken off gets it again.
func TestWebhookConfigurationsGoBeforeTheFirstFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(nil)
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
		for _, kind := range []string{"Mutating", "Validating"} {
			api.Put(strings.ToLower(kind)+"webhookconfigurations", fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: %sWebhookConfiguration, metadata: {name: %s}}", kind, policies.WebhookConfigurations))
		}
		got, err := (&Release{Config: api.Config()}).Run(t.Context())
		if err != nil || got.WebhooksBefore != 2 || got.Released != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		const configurations = "/apis/admissionregistration.k8s.io/v1/"
		want := []string{
			"DELETE " + configurations + "mutatingwebhookconfigurations/" + policies.WebhookConfigurations,
			"DELETE " + configurations + "validatingwebhookconfigurations/" + policies.WebhookConfigurations,
			"PATCH /api/v1/namespaces/shop/configmaps/a",
		}
		if diff := cmp.Diff(want, writes(api)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestADryRunOfAReleaseWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(nil)
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
		api.Put("leases", lease(time.Now()))
		api.Put("mutatingwebhookconfigurations", "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: "+policies.WebhookConfigurations+"}}")
		got, err := (&Release{Config: api.Config(), DryRun: true}).Run(t.Context())
		if err != nil || got.Released != 1 || got.WebhooksBefore != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if w := writes(api); len(w) > 0 {
			t.Errorf("wrote: %q", w)
		}
	})
}

// Without the controller they say what is not so any more. The Lease is needed until everything is
// released.
func TestWhatWeirWroteAboutItselfGoesLast(t *testing.T) {
	own := []string{"leases.coordination.k8s.io/weir-system/weir-controller", "leases.coordination.k8s.io/weir-system/weir-canary", "configmaps/weir-system/weir-file-policies", "configmaps/weir-system/weir-collector-canary"}
	for name, c := range map[string]struct {
		r       Release
		stays   bool
		counted int
	}{
		"in the namespace that is named":     {Release{LeaseNamespace: "weir-system"}, false, 4},
		"in that of the Lease":               {Release{}, false, 4},
		"not in another":                     {Release{LeaseNamespace: "other"}, true, 0},
		"not in a dry run":                   {Release{LeaseNamespace: "weir-system", DryRun: true}, true, 4},
		"not where a controller still works": {Release{LeaseNamespace: "weir-system", Force: true}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newAPI(nil)
				put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
				for _, key := range own {
					resource, name := strings.Split(key, "/")[0], strings.Split(key, "/")[2]
					if resource == "configmaps" {
						api.Put(resource, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: weir-system}}", name))
					} else {
						api.Put("leases", fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: weir-system}}", name))
					}
				}
				c.r.Config = api.Config()
				got, err := c.r.Run(t.Context())
				if err != nil || got.Own != c.counted || len(got.Failures) > 0 {
					t.Errorf("%+v, %v", got, err)
				}
				wrote := slices.DeleteFunc(writes(api), func(w string) bool { return strings.Contains(w, "webhookconfigurations") })
				if !c.r.DryRun && (len(wrote) == 0 || !strings.HasPrefix(wrote[0], "PATCH")) {
					t.Errorf("wrote %q, want the finalizer to go first", wrote)
				}
				for _, key := range own {
					if there := api.Get(key) != nil; there != c.stays {
						t.Errorf("%s is there: %t, want %t", key, there, c.stays)
					}
				}
			})
		})
	}
}

// TestLeaseInANamespaceThatIsNotWeirsHasNothingDeletedThere: whoever may write Leases in one can
// make one of Weir's name.
func TestLeaseInANamespaceThatIsNotWeirsHasNothingDeletedThere(t *testing.T) {
	for namespace, changed := range map[string]string{"": "", "weir-system": "weir-system"} {
		synctest.Test(t, func(t *testing.T) {
			api := newAPI(nil)
			for _, of := range []string{"weir-system", "shop"} {
				api.Put("leases", fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: %s}}", LeaseName, of))
				api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}", v1beta1.FilePolicies, of))
			}
			put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
			got, err := (&Release{Config: api.Config(), LeaseNamespace: namespace}).Run(t.Context())
			named := len(got.Failures) == 1 && strings.Contains(got.Failures[0], "Leases weir-controller are in the namespaces shop, weir-system") && strings.Contains(got.Failures[0], "--leader-elect-namespace")
			if err != nil || got.Released != 1 || named != (changed == "") || len(got.Failures) > 1 {
				t.Errorf("in %q: %+v, %v", namespace, got, err)
			}
			for _, of := range []string{"weir-system", "shop"} {
				for _, key := range []string{"leases.coordination.k8s.io/" + of + "/" + LeaseName, "configmaps/" + of + "/" + v1beta1.FilePolicies} {
					if there := api.Get(key) != nil; there != (of != changed) {
						t.Errorf("in %q: %s is there: %t", namespace, key, there)
					}
				}
			}
		})
	}
}

func lease(renewed time.Time) string {
	return fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: weir-system}, spec: {holderIdentity: weir-0, leaseDurationSeconds: 15, renewTime: %q}}",
		LeaseName, renewed.UTC().Format(metav1.RFC3339Micro))
}

// It would put back what is taken off.
func TestNothingIsReleasedWhileAControllerWorks(t *testing.T) {
	for name, c := range map[string]struct {
		ago   time.Duration
		force bool
		want  string // of the error
	}{
		"it renews its Lease":         {5 * time.Second, false, "a weir controller is running: the Lease weir-system/weir-controller is held by weir-0 and was renewed 5s ago"},
		"its clock is ahead":          {-5 * time.Second, false, "a weir controller is running: the Lease weir-system/weir-controller is held by weir-0 and was renewed 0s ago"},
		"it is of years to come":      {-20 * 365 * 24 * time.Hour, false, "a weir controller is running: the Lease weir-system/weir-controller is held by weir-0 and was renewed 0s ago"},
		"its Lease has run out":       {15 * time.Second, false, ""},
		"it works, and that is known": {5 * time.Second, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newAPI(nil)
				put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
				api.Put("leases", lease(time.Now().Add(-c.ago)))
				_, err := (&Release{Config: api.Config(), Force: c.force}).Run(t.Context())
				if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if wrote := len(writes(api)) > 0; wrote != (c.want == "") {
					t.Errorf("wrote: %t", wrote)
				}
			})
		})
	}
}

func TestWhatCannotBeReleasedIsNamedWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Method == "PATCH" && strings.HasSuffix(r.Path, "/stuck"):
				return apitest.Refuse(403, "Forbidden", "an admission webhook is against it")
			case r.Method == "GET" && strings.HasSuffix(r.Path, "/deployments"):
				return apitest.Refuse(403, "Forbidden", "may not list")
			}
			return nil
		})
		put(api, "configmaps", "ConfigMap", "stuck", v1beta1.Finalizer)
		put(api, "configmaps", "ConfigMap", "free", v1beta1.Finalizer)
		got, err := (&Release{Config: api.Config()}).Run(t.Context())
		if err != nil || got.Released != 1 || got.Failed != 1 || len(got.Failures) != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		for i, parts := range [][]string{{"stuck", "an admission webhook is against it"}, {"deployments", "may not list"}} {
			if !slices.ContainsFunc(got.Failures, func(f string) bool { return strings.Contains(f, parts[0]) && strings.Contains(f, parts[1]) }) {
				t.Errorf("failure %d is not in %q", i, got.Failures)
			}
		}
	})
}

// API servers hear of a deleted webhook configuration one after the other, and a Weir that was
// forgotten never does.
func TestAFinalizerThatIsPutBackIsTakenOffAgainAndThenTold(t *testing.T) {
	for _, times := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			var api *apitest.Server
			back := 0
			api = newAPI(func(r apitest.Request) *apitest.Reply {
				if r.Method == "GET" && strings.HasSuffix(r.Path, "/configmaps") && finalizersOf(api, "configmaps/shop/a") == nil && back < times {
					back++
					put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
				}
				return nil
			})
			put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
			got, err := (&Release{Config: api.Config()}).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(got.Failures, func(f string) bool { return strings.Contains(f, "something puts it back") })
			if lasts := times > 1; told != lasts || !lasts && len(finalizersOf(api, "configmaps/shop/a")) > 0 || back == 0 {
				t.Errorf("put back %d times of %d: %+v", back, times, got)
			}
		})
	}
}

func TestAnInterruptedReleaseSaysThatItCanGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		signal := errors.New("interrupt")
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" {
				stop(signal)
			}
			return nil
		})
		put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
		_, err := (&Release{Config: api.Config()}).Run(ctx)
		if !errors.Is(err, signal) || !strings.Contains(err.Error(), "run it again to go on") {
			t.Error(err)
		}
	})
}

// A controller has stopped when its pods are gone and its Lease has run out.
func TestAControllerHasStoppedWhenItsLeaseHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		scaled := false
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" && strings.HasSuffix(r.Path, "/deployments/weir/scale") {
				scaled = strings.Contains(r.Body, `"replicas":0`)
				return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			}
			return nil
		})
		api.Put("deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: weir, namespace: weir-system}, status: {observedGeneration: 9}}")
		api.Put("leases", lease(began))
		if err := StopController(t.Context(), api.Config(), types.NamespacedName{Namespace: "weir-system", Name: "weir"}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); !scaled || waited < 15*time.Second || waited > 16*time.Second {
			t.Errorf("scaled: %t, waited %s", scaled, waited)
		}
	})
}

func TestAControllerThatIsNotThereHasStopped(t *testing.T) {
	api := newAPI(func(r apitest.Request) *apitest.Reply {
		if r.Method == "PATCH" {
			return apitest.Refuse(404, "NotFound", "no such Deployment")
		}
		return nil
	})
	if err := StopController(t.Context(), api.Config(), types.NamespacedName{Namespace: "weir-system", Name: "weir"}); err != nil {
		t.Error(err)
	}
}

func TestAControllerThatDoesNotStopIsAnErrorThatSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" {
				return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			}
			return nil
		})
		api.Put("deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: weir, namespace: weir-system}, status: {observedGeneration: 9, replicas: 2}}")
		err := StopController(t.Context(), api.Config(), types.NamespacedName{Namespace: "weir-system", Name: "weir"})
		if err == nil || !strings.Contains(err.Error(), "2 of its pods are left") {
			t.Error(err)
		}
	})
}

// What the API server said last stands, when the time runs out in the middle of the next read.
func TestAReadThatIsCutShortHidesNotWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" {
				return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			}
			return nil
		})
		api.Put("deployments", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: weir, namespace: weir-system}, status: {observedGeneration: 9, replicas: 2}}")
		config, reads := api.Config(), 0
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == "GET" {
					if reads++; reads > 3 {
						return fixture.Hang(r)
					}
				}
				return next.RoundTrip(r)
			})
		})
		err := StopController(t.Context(), config, types.NamespacedName{Namespace: "weir-system", Name: "weir"})
		if err == nil || !strings.HasSuffix(err.Error(), "(2 of its pods are left)") {
			t.Errorf("after %d reads: %v", reads, err)
		}
	})
}

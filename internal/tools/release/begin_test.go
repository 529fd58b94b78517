package release

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

func putConfiguration(api *apitest.Server, kind string) {
	api.Put(strings.ToLower(kind)+"webhookconfigurations",
		fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: %sWebhookConfiguration, metadata: {name: %s}}", kind, policies.WebhookConfigurations))
}

// While a webhook configuration or a controller may be there, the finalizer would come back: not
// one is taken off.
func TestNothingIsReleasedThatWouldComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string // the request that is refused
		code         int
		force        bool
		want         []string // of the error; none: it goes on
	}{
		"leases may not be read":              {"GET", "/leases", 403, false, []string{"find out whether a weir controller is running", "--force"}},
		"leases may not be read, by force":    {"GET", "/leases", 403, true, nil},
		"leases are not served":               {"GET", "/leases", 404, false, []string{"find out whether a weir controller is running"}},
		"a configuration cannot be deleted":   {"DELETE", "/mutatingwebhookconfigurations/weir", 403, true, []string{"delete mutatingwebhookconfigurations.admissionregistration.k8s.io weir", "no"}},
		"nor the other":                       {"DELETE", "/validatingwebhookconfigurations/weir", 403, true, []string{"delete validatingwebhookconfigurations.admissionregistration.k8s.io weir", "no"}},
		"a configuration that goes meanwhile": {"DELETE", "/validatingwebhookconfigurations/weir", 404, true, nil},
		"it is not known what is served":      {"GET", "/api", 500, true, []string{"discover the kinds"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newAPI(func(r apitest.Request) *apitest.Reply {
				if r.Method == c.method && strings.HasSuffix(r.Path, c.path) {
					return apitest.Refuse(c.code, map[int]string{403: "Forbidden", 404: "NotFound", 500: "InternalError"}[c.code], "no")
				}
				return nil
			})
			putConfiguration(api, "Mutating")
			putConfiguration(api, "Validating")
			put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
			got, err := (&Release{Config: api.Config(), Force: c.force}).Run(t.Context())
			if (err == nil) != (c.want == nil) {
				t.Fatalf("%s: %v", name, err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q is not in %v", name, part, err)
				}
			}
			taken := slices.ContainsFunc(writes(api), func(w string) bool { return strings.HasPrefix(w, "PATCH") })
			if taken != (c.want == nil) || got.Released != map[bool]int64{true: 1}[taken] {
				t.Errorf("%s: a finalizer was taken off: %t, %+v", name, taken, got)
			}
		})
	}
}

// TestAReleaseWaitsForTheGuardToGo: the API server takes a moment to notice that it is deleted.
func TestAReleaseWaitsForTheGuardToGo(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		times int
		ok    bool
	}{
		"the guard":       {"ValidatingAdmissionPolicy '" + policies.InProcessGuardName + "' denied request", 3, true},
		"it does not go":  {"ValidatingAdmissionPolicy '" + policies.InProcessGuardName + "' denied request", 99, false},
		"somebody else's": {"not you", 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			refused := 0
			api := newAPI(func(r apitest.Request) *apitest.Reply {
				if r.Method != "DELETE" || !strings.HasSuffix(r.Path, "webhookconfigurations/weir") || refused == c.times {
					return nil
				}
				refused++
				return apitest.Refuse(403, "Forbidden", c.says)
			})
			putConfiguration(api, "Mutating")
			began := time.Now()
			_, err := (&Release{Config: api.Config()}).Run(t.Context())
			if (err == nil) != c.ok || time.Since(began) > time.Minute {
				t.Errorf("%s: %v after %s, refused %d times", name, err, time.Since(began), refused)
			}
		})
	}
}

// TestWhatTheAPIServerJudgesByItselfGoes: nobody would take it away later.
func TestWhatTheAPIServerJudgesByItselfGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(nil)
		for name, labels := range map[string]string{"weir-deletionpolicy-p": "{" + v1beta1.InProcessLabel + ": 'true'}", "weir-namespace": "{}"} {
			for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
				resource := strings.Replace(strings.ToLower(kind)+"s", "policys", "policies", 1)
				api.Put(resource, "{apiVersion: admissionregistration.k8s.io/v1, kind: "+kind+", metadata: {name: "+name+", labels: "+labels+"}}")
			}
		}
		got, err := (&Release{Config: api.Config()}).Run(t.Context())
		if err != nil || got.Own != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
			of := resource + ".admissionregistration.k8s.io/"
			if api.Get(of+"weir-deletionpolicy-p") != nil || api.Get(of+"weir-namespace") == nil {
				t.Errorf("%s: ours stays, or another went", resource)
			}
		}
	})
}

// A Lease without a holder, or that does not say until when, is no sign of a controller: a release
// must be possible when all else is broken.
func TestALeaseThatIsNotHeldHoldsNothingUp(t *testing.T) {
	for name, spec := range map[string]string{
		"given back":         `{holderIdentity: "", leaseDurationSeconds: 15, renewTime: %q}`,
		"never held":         `{leaseDurationSeconds: 15, renewTime: %q}`,
		"without a time":     `{holderIdentity: weir-0, leaseDurationSeconds: 15}`,
		"without a duration": `{holderIdentity: weir-0, renewTime: %q}`,
		"empty":              `{}`,
		"for no time":        `{holderIdentity: weir-0, leaseDurationSeconds: 0, renewTime: %q}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newAPI(nil)
			if strings.Contains(spec, "%q") {
				spec = fmt.Sprintf(spec, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
			}
			api.Put("leases", fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: weir-system}, spec: %s}", LeaseName, spec))
			put(api, "configmaps", "ConfigMap", "a", v1beta1.Finalizer)
			if got, err := (&Release{Config: api.Config()}).Run(t.Context()); err != nil || got.Released != 1 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		})
	}
}

// The Lease of a Weir in another namespace is another Weir's. Without a namespace all of them
// count.
func TestTheLeaseIsLookedForWhereTheControllerIs(t *testing.T) {
	for namespace, want := range map[string]string{"": "/apis/coordination.k8s.io/v1/leases", "weir-2": "/apis/coordination.k8s.io/v1/namespaces/weir-2/leases"} {
		synctest.Test(t, func(t *testing.T) {
			var asked []string
			api := newAPI(func(r apitest.Request) *apitest.Reply {
				if strings.HasSuffix(r.Path, "/leases") {
					asked = append(asked, r.Path+" "+r.Query)
				}
				return nil
			})
			if _, err := (&Release{Config: api.Config(), LeaseNamespace: namespace}).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			asked = slices.Compact(asked) // it is asked for again when what Weir wrote about itself goes
			if diff := cmp.Diff([]string{want + " fieldSelector=metadata.name%3D" + LeaseName}, asked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// stopping is the end of a controller, as its Deployment is read: each reply once, the last for
// ever.
func stopping(t *testing.T, patch *apitest.Reply, reads ...*apitest.Reply) (took time.Duration, err error) {
	began := time.Now()
	api := newAPI(func(r apitest.Request) *apitest.Reply {
		switch {
		case r.Method == http.MethodPatch:
			return patch
		case strings.HasSuffix(r.Path, "/deployments/weir"):
			reply := reads[0]
			reads = reads[min(1, len(reads)-1):]
			return reply
		}
		return nil
	})
	err = StopController(t.Context(), api.Config(), types.NamespacedName{Namespace: "weir-system", Name: "weir"})
	return time.Since(began), err
}

func TestAControllerIsWaitedForUntilNoPodIsLeft(t *testing.T) {
	deployment := func(generation, observed, replicas int) *apitest.Reply {
		return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "weir", "namespace": "weir-system", "generation": generation},
			"status":   map[string]any{"observedGeneration": observed, "replicas": replicas}}}
	}
	scaled := deployment(2, 1, 1)
	const poll = 500 * time.Millisecond
	for name, c := range map[string]struct {
		patch *apitest.Reply
		reads []*apitest.Reply
		took  time.Duration
		want  string // of the error
	}{
		"nothing runs":                        {scaled, []*apitest.Reply{deployment(2, 2, 0)}, 0, ""},
		"the scale has not been seen yet":     {scaled, []*apitest.Reply{deployment(2, 1, 0), deployment(2, 2, 0)}, poll, ""},
		"a pod ends":                          {scaled, []*apitest.Reply{deployment(2, 2, 1), deployment(2, 2, 1), deployment(2, 2, 0)}, 2 * poll, ""},
		"the Deployment is deleted meanwhile": {scaled, []*apitest.Reply{deployment(2, 2, 1), apitest.Refuse(404, "NotFound", "gone")}, poll, ""},
		"one read fails":                      {scaled, []*apitest.Reply{apitest.Refuse(403, "Forbidden", "not now"), deployment(2, 2, 0)}, poll, ""},
		"every read fails":                    {scaled, []*apitest.Reply{apitest.Refuse(403, "Forbidden", "may not read")}, stopTimeout, "may not read"},
		"it may not be scaled":                {apitest.Refuse(403, "Forbidden", "may not scale"), []*apitest.Reply{deployment(1, 1, 1)}, 0, "scale Deployment weir-system/weir to 0: may not scale"},
	} {
		synctest.Test(t, func(t *testing.T) {
			took, err := stopping(t, c.patch, c.reads...)
			if took != c.took || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v after %s, want %q after %s", name, err, took, c.want, c.took)
			}
		})
	}
}

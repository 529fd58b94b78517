package cmd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/tools/release"
	"github.com/weir-dev/weir/internal/version"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// TestExitCodes: whoever supervises a process starts it again after 1, and not after 3, before a
// person has looked.
func TestExitCodes(t *testing.T) {
	for want, errs := range map[int][]error{
		0: {nil},
		1: {errors.New("x"), errInterrupted, context.Canceled, fmt.Errorf("exit 3: %w", errFull)},
		3: {controller.ErrOtherCollector, fmt.Errorf("leader: %w", controller.ErrOtherCollector), errors.Join(errFull, controller.ErrOtherCollector)},
		4: {release.ErrNotHelm, fmt.Errorf("%w: x", release.ErrNotHelm)},
	} {
		for _, err := range errs {
			if got := ExitCode(err); got != want {
				t.Errorf("%v: %d, want %d", err, got, want)
			}
		}
	}
}

func TestVersionNamesWhatItWasBuiltWith(t *testing.T) {
	want := "weir " + version.Weir() + " (client-go " + moduleVersion("k8s.io/client-go") + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"
	if got := runProcess(t, weirProcess(t, "version")); got != (ended{0, want, ""}) {
		t.Errorf("%+v, want %s", got, want)
	}
	if got := moduleVersion("example.com/none"); got != "unknown" {
		t.Errorf("the version of what is not in it: %s", got)
	}
}

// TestNamespacesThatFlagsSay: of the leader's Lease and of the canary, in a cluster and outside of
// one.
func TestNamespacesThatFlagsSay(t *testing.T) {
	for args, want := range map[string][2]string{ // of the Lease; of the canary
		"":                              {"kube-system", "kube-system"},
		"--leader-elect-namespace a":    {"a", "a"},
		"--webhook-service shop/weir":   {"kube-system", "kube-system"},
		"--beside-builtin":              {"kube-system", ""},
		"in":                            {"", "kube-system"}, // the pod has no token, which would tell
		"in --webhook-service shop/w":   {"", "shop"},
		"in --leader-elect-namespace a": {"a", "a"},
		"in --beside-builtin":           {"", ""},
	} {
		rest, in := strings.CutPrefix(args, "in")
		t.Setenv("KUBERNETES_SERVICE_HOST", map[bool]string{true: "10.0.0.1"}[in])
		var f controllerFlags
		given(t, f.targetFlags.register, pick(rest, "--webhook"))
		f.beside = strings.Contains(rest, "--beside-builtin")
		_, f.leaderElectNamespace, _ = strings.Cut(pick(rest, "--leader"), " ")
		if got := [2]string{f.leaseNamespace(), f.canaryNamespace()}; got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
		f.leaderElect = true
		if _, err := f.election(apitest.New().Config(), logr.Discard()); (err != nil) != (want[0] == "") || err != nil && !strings.HasPrefix(err.Error(), "--leader-elect needs --leader-elect-namespace here: ") {
			t.Errorf("%q: %v", args, err)
		}
		if f.mode = modeShadow; want[0] == "" {
			if e, err := f.election(apitest.New().Config(), logr.Discard()); e != nil || err != nil {
				t.Errorf("shadow mode has no leader: %v, %v", e, err)
			}
		}
	}
}

// pick is the flag that begins so, and its value.
func pick(args, flag string) string {
	i := strings.Index(args, flag)
	if i < 0 {
		return ""
	}
	return args[i:]
}

// TestTheWebhookKnowsWhoCollects by the canary: where it cannot be read, neither is claimed.
func TestTheWebhookKnowsWhoCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := map[bool]string{true: "not you", false: "annotation weir.dev/canary-time \"soon\": must be a duration"}
		for name, c := range map[string]struct {
			age    time.Duration // 0: there is none
			more   string
			refuse bool
			want   policies.Collector
		}{
			"none":                     {0, "", false, policies.OthersCollect},
			"it stands":                {time.Minute, "annotations: {" + v1beta1.CanaryTimeAnnotation + ": 10s}, labels: {" + v1beta1.CollectsLabel + ": 'true'}", false, policies.WeirCollects},
			"it is young":              {time.Second, "annotations: {" + v1beta1.CanaryTimeAnnotation + ": 10s}, labels: {" + v1beta1.CollectsLabel + ": 'true'}", false, policies.OthersCollect},
			"Weir only looks":          {time.Minute, "labels: {}", false, policies.OthersCollect},
			"it must stand for longer": {time.Minute, "annotations: {" + v1beta1.CanaryTimeAnnotation + ": 2m0s}, labels: {" + v1beta1.CollectsLabel + ": 'true'}", false, policies.OthersCollect},
			"it says nothing sensible": {time.Minute, "annotations: {" + v1beta1.CanaryTimeAnnotation + ": soon}, labels: {" + v1beta1.CollectsLabel + ": 'true'}", false, policies.CollectorUnknown},
			"may not be read":          {time.Minute, "labels: {}", true, policies.CollectorUnknown},
		} {
			api := apitest.New()
			if c.age > 0 {
				api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: %s, creationTimestamp: %q, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: %s}], %s}}",
					v1beta1.CollectorCanary, time.Now().Add(-c.age).UTC().Format(time.RFC3339), v1beta1.CollectorCanaryOwner, c.more))
			}
			api.Intercept(func(apitest.Request) *apitest.Reply {
				if c.refuse {
					return apitest.Refuse(403, "Forbidden", "not you")
				}
				return nil
			})
			state, err := live.New(live.Options{Config: api.Config(), Log: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			ask, err := whoCollects(&begun{config: api.Config(), state: state}, "shop")
			if err != nil {
				t.Fatal(err)
			}
			got, err := ask(t.Context())
			if got != c.want || (err != nil) != (c.want == policies.CollectorUnknown) || err != nil && !strings.HasPrefix(err.Error(), "read ConfigMap shop/weir-collector-canary: "+says[c.refuse]) {
				t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
			}
		}
		if ask, err := whoCollects(nil, ""); ask != nil || err != nil {
			t.Errorf("--beside-builtin: %v", err)
		}
	})
}

// lasting is a source whose certificate has an end.
type lasting struct {
	serving
	until time.Time
}

func (l lasting) Expiry() (time.Time, bool) { return l.until, !l.until.IsZero() }

var began = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

func TestWhenTheCertificateExpiresIsAMetric(t *testing.T) {
	for _, c := range []struct {
		until time.Time
		want  float64
	}{{time.Time{}, 0}, {began, float64(began.Unix())}} {
		for _, with := range []prometheus.Collector{expiryOf(lasting{until: c.until})} {
			var m dto.Metric
			if err := with.(prometheus.Metric).Write(&m); err != nil || m.GetGauge().GetValue() != c.want {
				t.Errorf("%s: %v, %v", c.until, &m, err)
			}
		}
	}
}

package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/tools/doctor"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// clinic is an API server that a doctor looks at: it knows its version.
type clinic struct {
	*apitest.Server
	refuse string // the end of a path that is refused
	answer func(apitest.Request) *apitest.Reply
	lists  map[string][]any // of typed clients, by path
}

func newClinic() *clinic {
	c := &clinic{Server: apitest.New()}
	c.Intercept(c.intercept)
	return c
}

func (c *clinic) intercept(r apitest.Request) *apitest.Reply {
	if c.answer != nil {
		if reply := c.answer(r); reply != nil {
			return reply
		}
	}
	if list, found := c.lists[r.Path]; found && r.Method == http.MethodGet {
		return &apitest.Reply{Code: 200, Body: map[string]any{"items": list}}
	}
	switch {
	case c.refuse != "" && strings.HasSuffix(r.Path, c.refuse):
		return apitest.Refuse(403, "Forbidden", "you may not "+r.Method+" "+c.refuse)
	case r.Path == "/version":
		return &apitest.Reply{Code: 200, Body: map[string]any{"major": "1", "minor": "36+", "gitVersion": "v1.36.1-x"}}
	}
	return nil
}

// look is what a doctor reads of it.
func (c *clinic) look(t *testing.T) doctor.Facts {
	t.Helper()
	p, err := newPatient(c.Config(), "weir-system")
	if err != nil {
		t.Fatal(err)
	}
	return p.read(t.Context(), "")
}

// put makes an object of YAML in the namespace weir-system.
func (c *clinic) put(resource, apiVersion, kind, name, more string) {
	c.Put(resource, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {namespace: weir-system, name: %s}, %s}", apiVersion, kind, name, more))
}

func (c *clinic) deploy(args ...string) {
	text, _ := json.Marshal(args)
	c.put("deployments", "apps/v1", "Deployment", "weir-controller", "spec: {template: {spec: {containers: [{name: weir, args: "+string(text)+"}]}}}")
}

// TestAnEmptyClusterIsReadWhole: what is not there is a fact, and no error.
func TestAnEmptyClusterIsReadWhole(t *testing.T) {
	c := newClinic()
	f := c.look(t)
	want := doctor.Facts{Mode: doctor.Companion, Asked: "Unknown", AskedSays: f.AskedSays, Errors: map[string]string{},
		User: "system:serviceaccount:weir-system:weir-controller"}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, r := range c.Requests() {
		if r.Method != http.MethodGet && !strings.Contains(r.Body, `"dryRun":["All"]`) {
			t.Errorf("it sends %s", r)
		}
	}
}

// TestWhatMayNotBeReadIsNamedByItsFact: and all else is read.
func TestWhatMayNotBeReadIsNamedByItsFact(t *testing.T) {
	for refuse, want := range map[string][]string{
		"/deployments/weir-controller":          {"flags"},
		"/pods":                                 {"managers"},
		"/configmaps/weir-collector-canary":     {"canary"},
		"/mutatingadmissionpolicies":            {"admission"},
		"/validatingwebhookconfigurations":      {"admission"},
		"/leases/a-lease-that-no-flag-asks-for": nil,
	} {
		t.Run(refuse, func(t *testing.T) {
			c := newClinic()
			c.refuse = refuse
			f := c.look(t)
			got := []string{}
			for fact, why := range f.Errors {
				got = append(got, fact)
				if !strings.Contains(why, "you may not GET "+refuse) {
					t.Errorf("%s: %s", fact, why)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, append([]string{}, want...)) {
				t.Errorf("not read: %q, want %q", got, want)
			}
		})
	}
}

// TestACanaryStandsOnlyWhileItIsGarbage: another ConfigMap of its name, or one that is being
// deleted, proves nothing.
func TestACanaryStandsOnlyWhileItIsGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const owner = "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: weir-never-existed, uid: "
		made := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
		for name, c := range map[string]struct {
			metadata string
			want     time.Duration
		}{
			"garbage":             {owner + v1beta1.CollectorCanaryOwner + "}]", time.Hour},
			"of another owner":    {owner + "other}]", 0},
			"without an owner":    {"labels: {}", 0},
			"that is deleted now": {owner + v1beta1.CollectorCanaryOwner + "}], finalizers: [example.com/hold], deletionTimestamp: '2000-01-01T00:00:00Z'", 0},
		} {
			one := newClinic()
			one.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: weir-system, name: weir-collector-canary, creationTimestamp: '"+made+"', "+c.metadata+"}}")
			if f := one.look(t); f.Canary != c.want {
				t.Errorf("%s: %v (%q), want %s", name, f.Canary, f.Errors, c.want)
			}
		}
	})
}

// TestManagersAreReadFromTheirPods: what each runs, and as whom it deletes.
func TestManagersAreReadFromTheirPods(t *testing.T) {
	c := newClinic()
	var pods []any
	for name, args := range map[string]string{
		"a": "--controllers=*,-garbage-collector-controller", "b": "--use-service-account-credentials=true", "c": "--leader-elect", "d": "--use-service-account-credentials=false",
	} {
		pods = append(pods, map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"containers": []any{map[string]any{"command": []any{"kube-controller-manager", args}}}}})
	}
	slices.SortFunc(pods, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a.(map[string]any)["metadata"]), fmt.Sprint(b.(map[string]any)["metadata"]))
	})
	c.lists = map[string][]any{"/api/v1/namespaces/kube-system/pods": pods}
	c.answer = func(r apitest.Request) *apitest.Reply {
		if strings.HasSuffix(r.Path, "/pods") && r.Query != "labelSelector=component%3Dkube-controller-manager" {
			t.Errorf("it asks for pods by %q", r.Query)
		}
		return nil
	}
	f := c.look(t)
	want := []doctor.Manager{{Name: "a", Controllers: "*,-garbage-collector-controller"}, {Name: "b", Controllers: "*"}, {Name: "c", Controllers: "*"}, {Name: "d", Controllers: "*"}}
	if diff := cmp.Diff(want, f.Managers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatTheDeploymentSays: of its mode, and of other collectors, in one word or two.
func TestWhatTheDeploymentSays(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		mode   string
		leaves bool
	}{
		"nothing":                {[]string{"controller"}, doctor.Companion, false},
		"shadow mode":            {[]string{"controller", "--mode", "shadow"}, doctor.Shadow, false},
		"namespaces are left":    {[]string{"controller", "--mode=replace", "--drain-namespaces=false"}, doctor.Replace, true},
		"namespaces are drained": {[]string{"controller", "--mode=replace", "--drain-namespaces=true"}, doctor.Replace, false},
	} {
		one := newClinic()
		one.deploy(c.args...)
		f := one.look(t)
		if f.Mode != c.mode || f.LeavesNamespaces != c.leaves {
			t.Errorf("%s: %s mode, namespaces are left: %t", name, f.Mode, f.LeavesNamespaces)
		}
	}
}

// TestTheWebhookIsWaitedFor: after an installation it takes the API server seconds to ask; and one
// that never does is an error, in time.
func TestTheWebhookIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		err   string
	}{
		"at once": {0, ""}, "after 10 s": {10 * time.Second, ""}, "never": {time.Hour, "policies are not known to be enforced: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				one := newClinic()
				one.answer = func(r apitest.Request) *apitest.Reply {
					if r.Method != http.MethodDelete {
						return nil
					}
					if time.Since(began) < c.after {
						return apitest.Refuse(503, "ServiceUnavailable", "not yet")
					}
					var options struct{ GracePeriodSeconds int64 }
					if err := json.Unmarshal([]byte(r.Body), &options); err != nil || !strings.Contains(r.Body, `"dryRun":["All"]`) {
						t.Errorf("%v: it sends %s", err, r)
					}
					return apitest.Refuse(403, "Forbidden", `admission webhook "canary.weir.dev" denied the request: `+policies.CanaryAnswer(options.GracePeriodSeconds))
				}
				var out bytes.Buffer
				p, err := newPatient(one.Config(), "weir-system")
				if err != nil {
					t.Fatal(err)
				}
				err = p.printAsked(t.Context(), &out)
				if (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				if err == nil && !strings.HasPrefix(out.String(), "ok  webhook  ") {
					t.Errorf("it prints %q", out.String())
				}
				if took := time.Since(began); took > askFor+2*askEvery || c.err == "" && took > c.after+askEvery {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// kubeconfigOf writes one that names a server.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestWhatADoctorPrints: a problem is an error, each finding is a line, and what to do is below it.
func TestWhatADoctorPrints(t *testing.T) {
	var out bytes.Buffer
	err := printFindings(&out, []doctor.Finding{
		{Grade: doctor.OK, About: "version", Says: "1.36"}, {Grade: doctor.Problem, About: "garbage collector", Says: "none\nworks", Do: "start one"},
	})
	want := "ok       version            1.36\nproblem  garbage collector  none works\n                            → start one\n"
	if err != nil || out.String() != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, out.String(), want)
	}
}

// TestFlagsAreCheckedBeforeTheClusterIsAsked: and a cluster that cannot be asked is an error that
// says where it was sought.
func TestFlagsAreCheckedBeforeTheClusterIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it asks for %s", r.URL) }))
	defer server.Close()
	file := kubeconfigOf(t, server.URL)
	there, gone, no := clusterFlags{kubeconfig: file}, clusterFlags{kubeconfig: "/none"}, clusterFlags{kubeconfig: file, context: "no"}
	var out bytes.Buffer
	for want, err := range map[string]error{
		`--mode "both": must be shadow, companion or replace`:                        runDoctor(t.Context(), &doctorFlags{clusterFlags: there, namespace: "n", mode: "both"}, &out),
		"find an API server through /none: ":                                         runDoctor(t.Context(), &doctorFlags{clusterFlags: gone, namespace: "n"}, &out),
		"find an API server through " + file + `: context "no" does not exist`:       runDoctor(t.Context(), &doctorFlags{clusterFlags: no, namespace: "n", webhook: true}, &out),
		`--stop-controller "x": must be NAMESPACE/NAME`:                              runRelease(t.Context(), &releaseFlags{clusterFlags: there, stop: "x"}, &out, &out),
		"find an API server through " + file + `: context "no" does not exist` + " ": runRelease(t.Context(), &releaseFlags{clusterFlags: no}, &out, &out),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) || out.Len() > 0 {
			t.Errorf("%v, want %q; it prints %q", err, want, out.String())
		}
	}
}

// TestWrongCommandLinesAreErrors: which name what is wrong, on the other stream.
func TestWrongCommandLinesAreErrors(t *testing.T) {
	for args, want := range map[string]string{
		"doctor here":                   `unknown command "here" for "weir doctor"`,
		"release here":                  `unknown command "here" for "weir release"`,
		"policy lint":                   "requires at least 1 arg(s), only received 0",
		"policy lint /none":             "read policies: open /none: no such file or directory",
		"policy test /none":             "no such file or directory",
		"version x":                     `unknown command "x" for "weir version"`,
		"collect":                       `unknown command "collect" for "weir"`,
		"controller --archive-mib many": `invalid argument "many" for "--archive-mib" flag`,
		"controller --colour":           "unknown flag: --colour",
		"controller now":                `unknown command "now" for "weir controller"`,
	} {
		t.Run(args, func(t *testing.T) {
			var out, errOut bytes.Buffer
			root := Root()
			root.SetArgs(strings.Fields(args))
			root.SetOut(&out)
			root.SetErr(&errOut)
			err := root.Execute()
			if err == nil || !strings.Contains(err.Error(), want) || ExitCode(err) != 1 {
				t.Errorf("%v, exit %d, want %q", err, ExitCode(err), want)
			}
			if out.Len() > 0 || !strings.HasPrefix(errOut.String(), "Error: ") {
				t.Errorf("it prints %q, and says %q", out.String(), errOut.String())
			}
		})
	}
}

// TestAdmissionThatLetsOthersThroughIsFound: in policies and webhooks that are asked about deletes
// or updates. Those of Weir, and one that is asked about creates only, are no finding.
func TestAdmissionThatLetsOthersThroughIsFound(t *testing.T) {
	const not = "expression: 'request.userInfo.username != \"system:serviceaccount:kube-system:generic-garbage-collector\"'"
	const v1 = "apiVersion: admissionregistration.k8s.io/v1, "
	c := newClinic()
	policy := func(resource, kind, name, operations, more string) {
		c.Put(resource, "{"+v1+"kind: "+kind+", metadata: {name: "+name+"}, spec: {matchConstraints: {resourceRules: [{operations: ["+operations+"]}]}, "+more+"}}")
	}
	policy("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "fixed", "UPDATE", "validations: [{expression: 'false'}, {"+not+"}]")
	policy("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "creates", "CREATE", "validations: [{"+not+"}]")
	policy("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "everybody", "DELETE", "validations: [{expression: 'false'}]")
	policy("mutatingadmissionpolicies", "MutatingAdmissionPolicy", "marks", "'*'", "matchConditions: [{name: a, "+not+"}]")
	hooks := func(kind, name, webhooks string) {
		c.Put(strings.ToLower(kind)+"s", "{"+v1+"kind: "+kind+", metadata: {name: "+name+"}, webhooks: ["+webhooks+"]}")
	}
	const matches = "matchConditions: [{name: a, " + not + "}]}"
	hooks("ValidatingWebhookConfiguration", "guard", "{rules: [{operations: [CREATE]}], "+matches+", {rules: [{operations: [DELETE]}], "+matches)
	hooks("ValidatingWebhookConfiguration", "weir", "{rules: [{operations: [DELETE]}], "+matches)
	hooks("MutatingWebhookConfiguration", "creates", "{rules: [{operations: [CREATE]}], "+matches)
	f := c.look(t)
	var want []doctor.Admission
	for _, name := range []string{"ValidatingAdmissionPolicy/fixed", "MutatingAdmissionPolicy/marks", "ValidatingWebhookConfiguration/guard"} {
		want = append(want, doctor.Admission{Name: name, Names: policies.GarbageCollector})
	}
	if diff := cmp.Diff(want, f.Admission); diff != "" {
		t.Errorf("%v (-want +got):\n%s", f.Errors, diff)
	}
}

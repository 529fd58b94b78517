package cmd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// served has an API server in memory listen at a port, for a process, and returns a kubeconfig that
// names it.
func served(t *testing.T, api http.RoundTripper) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := asJSON(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		resp, err := api.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler) // the connection breaks off
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // the client may have gone
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server.URL)
}

// asJSON reads a request, so that it ends when its client goes, and has it say in JSON what a typed
// client says in protobuf.
func asJSON(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.Header.Get("Content-Type") == "application/vnd.kubernetes.protobuf" {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return err
		}
		if body, err = json.Marshal(o); err != nil {
			return err
		}
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return nil
}

// TestADoctorEndsWithWhatItFound: a problem is exit code 1, and is told on stderr beside the
// findings on stdout; what is not known is none.
func TestADoctorEndsWithWhatItFound(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		none bool // no garbage collector
		code int
		out  string // of a line
		err  string
	}{
		"nothing is wrong":       {"", false, 0, "ok ", ""},
		"something is not known": {"", false, 0, "unknown  garbage collector", ""},
		"no collector":           {"", true, 1, "problem  garbage collector", "Error: 1 problem in companion mode\n"},
		"in another mode":        {"--mode shadow", true, 1, "problem  garbage collector", "Error: 1 problem in shadow mode\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newClinic()
			if name == "something is not known" {
				api.refuse = "/pods"
			}
			if c.none {
				api.lists = map[string][]any{"/api/v1/namespaces/kube-system/pods": {map[string]any{"metadata": map[string]any{"name": "kcm"},
					"spec": map[string]any{"containers": []any{map[string]any{"args": []any{"--controllers=*,-garbagecollector"}}}}}}}
			}
			kubeconfig := served(t, api)
			got := runProcess(t, weirProcess(t, append(strings.Fields("doctor --kubeconfig "+kubeconfig), strings.Fields(c.args)...)...))
			if got.code != c.code || got.err != c.err || !strings.Contains("\n"+got.out, "\n"+c.out) {
				t.Errorf("exit code %d, on stderr %q, on stdout\n%s", got.code, got.err, got.out)
			}
		})
	}
}

// TestWhatIsNotForADoctorIsRefused: --webhook finds out one thing, and a namespace that is empty is
// that of a variable without a value.
func TestWhatIsNotForADoctorIsRefused(t *testing.T) {
	kubeconfig := served(t, newClinic())
	for args, want := range map[string]string{
		"--namespace=":            `--namespace "": must be the name of a namespace`,
		"-n a/b":                  `--namespace "a/b": must be the name of a namespace`,
		"--webhook --mode=":       "", // as a script has it that knows no mode
		"--webhook --mode shadow": "--webhook finds out one thing: leave --mode out",
		"--mode x -n y_":          "--mode \"x\": must be shadow, companion or replace\n--namespace \"y_\": must be the name of a namespace",
	} {
		f := doctorFlags{}
		given(t, f.register, args)
		wantError(t, args, f.check(), want)
		if want == "" {
			continue
		}
		if got := runProcess(t, weirProcess(t, append([]string{"doctor", "--kubeconfig", kubeconfig}, strings.Fields(args)...)...)); got != (ended{1, "", "Error: " + want + "\n"}) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// hangs is an API server that does not answer requests whose path has an end; it tells of each.
type hangs struct {
	http.RoundTripper
	end   string
	asked chan struct{}
}

func (h hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, h.end) {
		return h.RoundTripper.RoundTrip(r)
	}
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestCtrlCEndsACommandThatWaitsForTheCluster: at once, with an error, and without half an answer.
// A script that goes on if weir doctor finds nothing must not go on.
func TestCtrlCEndsACommandThatWaitsForTheCluster(t *testing.T) {
	for args, c := range map[string]struct{ hangs, err string }{
		"doctor":            {"/pods", ""},
		"doctor --mode=":    {"/version", ""},
		"doctor -n a":       {"/configmaps/weir-collector-canary", ""},
		"doctor --webhook":  {"/leases/weir-canary", ""},
		"release":           {"/leases", ": what was released stays released; run it again to go on"},
		"release --dry-run": {"/version", ""},
		"release --force":   {"/configmaps", ": what was released stays released; run it again to go on"},
		"release --stop-controller weir-system/weir-controller": {"/scale", ""},
		"controller":                    {"/version", ""},
		"webhook --webhook-service a/b": {"/version", ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			api := hangs{newClinic().withKinds(), c.hangs, make(chan struct{}, 1)}
			process := weirProcess(t, append(strings.Fields(args), "--kubeconfig", served(t, api))...)
			wait, end := startProcess(t, process), make(chan ended, 1)
			go func() { end <- wait() }()
			select {
			case e := <-end:
				t.Fatalf("it does not ask for %s: %+v", c.hangs, e)
			case <-api.asked:
			}
			if err := process.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			if e := <-end; e.code != 1 || e.out != "" || !strings.HasSuffix(e.err, "Error: interrupted"+c.err+"\n") {
				t.Errorf("%+v, want interrupted%s", e, c.err)
			}
		})
	}
}

// withKinds has a clinic serve Namespaces and ConfigMaps, and tell of it as an API server does.
func (c *clinic) withKinds() *clinic {
	all := metav1.Verbs{"get", "list", "watch", "delete", "patch"}
	answer := c.answer
	c.answer = func(r apitest.Request) *apitest.Reply {
		if answer != nil {
			if reply := answer(r); reply != nil {
				return reply
			}
		}
		switch {
		case strings.HasSuffix(r.Path, "/leases") && r.Method == http.MethodGet:
			return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": []any{}}}
		case r.Path == "/api":
			return &apitest.Reply{Code: 200, Body: metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}}
		case r.Path == "/apis":
			return &apitest.Reply{Code: 200, Body: metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}}
		case r.Path == "/api/v1":
			return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
				APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace", Verbs: all}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all}}}}
		}
		return nil
	}
	return c
}

// TestADoctorDoesNotWaitForEverForAnAPIServerThatHangs: each request has a time, and all together
// have one. What was not read by then is not known.
func TestADoctorDoesNotWaitForEverForAnAPIServerThatHangs(t *testing.T) {
	for end, want := range map[string]string{"": "canary", "/pods": "managers"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p, err := newPatient(&rest.Config{Host: "http://api.test", QPS: -1, Transport: hangs{newClinic(), end, nil}, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "weir-system")
			if err != nil {
				t.Fatal(err)
			}
			f := p.read(t.Context(), "")
			if took := time.Since(began); took > 3*time.Minute || took < doctorTimeout {
				t.Errorf("%q: it took %s", end, took)
			}
			if _, failed := f.Errors[want]; failed != (want != "") {
				t.Errorf("%q: not read are %v", end, f.Errors)
			}
		})
	}
}

// TestAReleaseSaysWhatItDid: on stderr; stdout has nothing, but in a dry run the list of what would
// be released, which changes nothing.
func TestAReleaseSaysWhatItDid(t *testing.T) {
	for name, c := range map[string]struct {
		args   string
		refuse bool // to change an object
		want   ended
		left   bool // the finalizer
	}{
		"a dry run": {"--dry-run", false, ended{0, "mutatingwebhookconfigurations.admissionregistration.k8s.io weir\nconfigmaps shop/a\n",
			"would release 1 of 2 objects in 2 kinds, and delete 1 webhook configuration and 0 objects of weir's own\n"}, true},
		"all":     {"", false, ended{0, "", "released 1 of 2 objects in 2 kinds, and deleted 1 webhook configuration and 0 objects of weir's own\n"}, false},
		"not all": {"--force", true, ended{1, "", "Error: 1 thing could not be released or looked at; run it again when the cause is gone\n"}, true},
		"what works elsewhere is another's": {"--stop-controller weir-2/weir-controller", false,
			ended{0, "", "released 1 of 2 objects in 2 kinds, and deleted 1 webhook configuration and 0 objects of weir's own\n"}, false},
		"while one works whose Lease is elsewhere": {"--stop-controller weir-3/weir-controller", false,
			ended{1, "", "Error: a weir controller is running: the Lease weir-system/weir-controller is held by a_1 and was renewed "}, true},
		"while one works": {"--leader-elect-namespace weir-system", false, ended{1, "", "Error: a weir controller is running: the Lease weir-system/weir-controller is held by a_1 and was renewed "}, true},
		"not run by Helm": {"--helm-release weir --stop-controller weir-system/weir-controller", false, ended{4, "", "Error: nothing was changed: this is the hook that Helm runs "}, true},
		"run by Helm": {"--helm-release installed --stop-controller weir-system/weir-controller", false,
			ended{0, "", "released 1 of 2 objects in 2 kinds, and deleted 1 webhook configuration and 0 objects of weir's own\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newClinic()
			api.answer = func(r apitest.Request) *apitest.Reply {
				switch {
				case strings.HasSuffix(r.Path, "/namespaces/weir-2/leases"):
					return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": []any{map[string]any{
						"metadata": map[string]any{"namespace": "weir-2", "name": "weir-controller"}, "spec": map[string]any{}}}}}
				case strings.HasSuffix(r.Path, "/namespaces/weir-3/leases"):
				case strings.HasSuffix(r.Path, "/leases") && (strings.Contains(c.args, "--leader-elect-namespace") || strings.Contains(c.args, "weir-3")):
					return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": []any{map[string]any{
						"metadata": map[string]any{"namespace": "weir-system", "name": "weir-controller"},
						"spec":     map[string]any{"holderIdentity": "a_1", "leaseDurationSeconds": 3600, "renewTime": time.Now().UTC().Format(metav1.RFC3339Micro)}}}}}
				case strings.HasSuffix(r.Path, "/deployments/weir-controller/scale"):
					return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
				case strings.HasSuffix(r.Path, "/deployments/weir-controller"):
					return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
						"namespace": "weir-system", "name": "weir-controller", "annotations": map[string]any{"meta.helm.sh/release-name": "installed"}}}}
				case c.refuse && r.Method == http.MethodPatch:
					return apitest.Refuse(403, "Forbidden", "not you")
				}
				return nil
			}
			api.withKinds()
			api.Put("mutatingwebhookconfigurations", "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: "+policies.WebhookConfigurations+"}}")
			api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: a, finalizers: ["+v1beta1.Finalizer+", example.com/other]}}")
			api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: b}}")
			got := runProcess(t, weirProcess(t, append([]string{"release", "--test-arming-window", "1s", "--kubeconfig", served(t, api)}, strings.Fields(c.args)...)...))
			if got.code != c.want.code || got.out != c.want.out || !strings.Contains("\n"+got.err, "\n"+c.want.err) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if c.refuse && !strings.Contains(got.err, "configmaps shop/a") {
				t.Errorf("it does not say what: %s", got.err)
			}
			list, _ := api.Get("configmaps/shop/a")["metadata"].(map[string]any)["finalizers"].([]any)
			if want := map[bool]int{true: 2, false: 1}[c.left]; len(list) != want {
				t.Errorf("finalizers are %v", list)
			}
		})
	}
}

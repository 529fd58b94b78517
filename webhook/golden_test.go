package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// fixture is a webhook with its policies and an API server, on the clock of a bubble.
type fixture struct {
	*testing.T
	api     *apitest.Server
	state   *live.State
	handler http.Handler
	uids    atomic.Int32

	mu      sync.Mutex
	granted []string
	refuse  *apitest.Reply // of access reviews
}

// elapse lets time pass in a bubble, where it costs none, until all is quiet. Outside of one it
// panics.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// withFixture runs a test, in a bubble, with a webhook whose policies are in force.
func withFixture(t *testing.T, test func(*fixture)) {
	t.Helper()
	withFixtureOf(t, apitest.New(), someFacts(), test)
}

// withFixtureOf is withFixture, with another API server and other facts.
func withFixtureOf(t *testing.T, api *apitest.Server, facts policies.Facts, test func(*fixture)) {
	t.Helper()
	withOptions(t, api, Options{Facts: facts}, test)
}

// sealing is a webhook with a key: without one what objects say is believed.
func sealing() Options {
	seal := func(text string) string { return fmt.Sprintf("%.8x", sha256.Sum256([]byte("key "+text))) }
	return Options{Facts: someFacts(), Seal: func(text string) (string, bool) { return seal(text), true },
		Sealed: func(text, written string) bool { return written == seal(text) }}
}

func withOptions(t *testing.T, api *apitest.Server, o Options, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{T: t, api: api}
		b.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}")
		b.api.Intercept(b.review)
		state, err := live.New(live.Options{Config: b.api.Config(), Self: []string{"weir"}})
		if err != nil {
			t.Fatal(err)
		}
		b.state = state
		o.Config, o.Policies, o.Takes = b.api.Config(), state, takes
		if b.handler, err = New(o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		changed := state.Changed()
		go func() { done <- state.Run(ctx) }()
		<-changed
		test(b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

var configMap = policies.Caught{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}

// someFacts: three ConfigMaps and ten Pods and a ReplicaSet are deleted with uid-web, seven Secrets
// with any namespace, nine custom resources with any definition, and Deployments and Pods are
// served.
func someFacts() policies.Facts {
	return policies.Facts{
		Dependents: func(s policies.Search, _ int) (policies.AlsoDeleted, bool) {
			var f policies.AlsoDeleted
			if s.UID == "uid-web" && !s.Kept(schema.GroupResource{Resource: "pods"}) {
				f.Kinds = []policies.KindCount{{Resource: "pods", Count: 10, Names: []string{"web-1", "web-2", "web-3"}},
					{Resource: "replicasets.apps", Count: 1, Names: []string{"web"}}}
			}
			return f, true
		},
		Content: func(string) (policies.AlsoDeleted, bool) {
			return policies.AlsoDeleted{Kinds: []policies.KindCount{{Resource: "secrets", Count: 7,
				Names: []string{"bank-password"}}}}, true
		},
		Instances: func(gr schema.GroupResource) (policies.AlsoDeleted, bool) {
			return policies.AlsoDeleted{Kinds: []policies.KindCount{{Resource: gr.String(), Count: 9,
				Names: []string{"secret-plan"}}}}, true
		},
		// Three ConfigMaps go with uid-web, and with the namespace.
		Catch: func(uid types.UID, _, wanted func(schema.GroupResource) bool) policies.Catch {
			c := policies.Catch{Complete: uid != "uid-new"}
			if !wanted(configMap.Resource.GroupResource()) || uid != "uid-web" {
				return c
			}
			for _, name := range []string{"plain", "precious", "confirmed"} {
				o := configMap
				o.Namespace, o.Name, o.UID = "shop", name, types.UID("uid-"+name)
				c.Objects = append(c.Objects, o)
			}
			return c
		},
		Holds: func(s policies.Search, wanted func(schema.GroupResource) bool) ([]policies.Caught, bool) {
			if s.Namespace != "shop" || !wanted(configMap.Resource.GroupResource()) {
				return nil, true
			}
			return []policies.Caught{configMap}, true
		},
		Kind: func(gvk schema.GroupVersionKind) policies.Kind {
			kinds := map[string]schema.GroupResource{"Deployment": {Group: "apps", Resource: "deployments"},
				"Pod":       {Resource: "pods"},
				"ConfigMap": {Resource: "configmaps"}, "Lease": {Group: "coordination.k8s.io", Resource: "leases"}}
			gr, ok := kinds[gvk.Kind]
			return policies.Kind{Known: true, Served: ok, Namespaced: true, Resources: []schema.GroupResource{gr}}
		},
	}
}

// review answers SubjectAccessReviews.
func (b *fixture) review(r apitest.Request) *apitest.Reply {
	if !strings.HasSuffix(r.Path, "/subjectaccessreviews") {
		return nil
	}
	var asked struct {
		Spec struct {
			User               string
			ResourceAttributes struct{ Verb, Group, Resource, Subresource, Namespace, Name string }
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &asked); err != nil {
		return apitest.Refuse(400, "BadRequest", err.Error())
	}
	a := asked.Spec.ResourceAttributes
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	allowed := slices.Contains(b.granted, strings.Join([]string{asked.Spec.User, a.Verb, a.Resource}, " "))
	return &apitest.Reply{Code: 201, Body: map[string]any{"kind": "SubjectAccessReview",
		"apiVersion": "authorization.k8s.io/v1",
		"status":     map[string]any{"allowed": allowed}}}
}

func (b *fixture) grant(what ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted = what
}

func (b *fixture) refuseAccess(r *apitest.Reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = r
}

// policies puts policies in force.
func (b *fixture) policies(text string) {
	changed := b.state.Changed()
	for _, doc := range strings.Split(text, "\n---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			b.Fatal(err)
		}
		b.api.Put(live.Resource(kind.Kind).Resource, doc)
	}
	<-changed
}

// ask sends a review with a request in YAML. Several may be sent at once.
func (b *fixture) ask(webhook, requestYAML string) (int, []byte) {
	b.Helper()
	uid := b.uids.Add(1)
	var in admissionv1.AdmissionReview
	in.APIVersion, in.Kind = "admission.k8s.io/v1", "AdmissionReview"
	if err := yaml.UnmarshalStrict([]byte(requestYAML), &in.Request); err != nil {
		b.Fatalf("%v in:\n%s", err, requestYAML)
	}
	in.Request.UID = types.UID(fmt.Sprintf("review-%d", uid))
	body, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	w := post(b.handler, "/"+webhook+"?timeout=10s", aJSON, bytes.NewReader(body))
	return w.Code, w.Body.Bytes()
}

// asked are the requests to the API server since the last time. Their order is not fixed: some are
// sent together.
func (b *fixture) asked() []string {
	synctest.Wait()
	var out []string
	for _, r := range b.api.Requests() {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return out
}

// readable is an answer with its patch as it was before it was encoded.
func readable(t *testing.T, body []byte) string {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		return strings.TrimSuffix(string(body), "\n")
	}
	if response, _ := out["response"].(map[string]any); response["patch"] != nil {
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil {
			t.Fatal(err)
		}
		response["patch"] = json.RawMessage(review.Response.Patch)
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	if err := to.Encode(out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// TestReviews plays testdata/*.txt: policies, objects, who may what, and then a review with its
// answer, as the API server gets it but for the patch, which is decoded, and with all that was
// asked of the API server meanwhile. The clock stands still but for wait, and begins with the year
// 2000.
//
// After a change, run with -rewrite, read the diff, and commit it only if you can explain it.
func TestReviews(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		options := Options{Facts: someFacts()}
		if strings.Contains(path, "confirmed") {
			options = sealing()
		}
		withOptions(t, apitest.New(), options, func(b *fixture) {
			datadriven.RunTest(b.T, path, func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "policies":
					b.policies(d.Input)
				case "object": // RESOURCE
					b.api.Put(d.CmdArgs[0].Key, d.Input)
				case "grant": // one "USER VERB RESOURCE" a line
					b.grant(strings.Split(d.Input, "\n")...)
				case "wait":
					elapse(mustDuration(t, d.CmdArgs[0].Key))
				case "show": // RESOURCE/NAMESPACE/NAME …
					var out strings.Builder
					for _, a := range d.CmdArgs {
						meta, _ := b.api.Get(a.Key)["metadata"].(map[string]any)
						fmt.Fprintf(&out, "%s finalizers=%v annotations=%v\n", a.Key, meta["finalizers"], meta["annotations"])
					}
					return out.String()
				case "review": // WEBHOOK
					b.asked()
					code, body := b.ask(d.CmdArgs[0].Key, d.Input)
					out := fmt.Sprintf("%d\n%s\n", code, readable(t, body))
					for _, r := range b.asked() {
						out += r + "\n"
					}
					return out
				default:
					t.Fatalf("%s: unknown verb %q", d.Pos, d.Cmd)
				}
				return ""
			})
		})
	})
}

func mustDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

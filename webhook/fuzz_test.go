package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// fuzzed are policies of every kind about everything, so that no request is let past unseen.
const fuzzed = `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: shape}, spec: {match: {resources: [{apiGroups: ["*"], resources: ["*"]}], matchConditions: [{name: c, expression: "!has(oldObject.spec) || oldObject.spec.replicas < 3"}]}, propagation: {default: Foreground, allowed: [Foreground, Background], dependents: [{apiGroups: [""], resources: [pods], action: Orphan}]}}}
---
{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: protect}, spec: {match: {resources: [{apiGroups: ["*"], resources: ["*"]}], namespaceSelector: {matchLabels: {team: a}}}, protection: {maxDependents: 2, confirmation: Required}, failurePolicy: Fail}}
---
{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: ask}, spec: {match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}, blockOwnerDeletion: RequirePermission, changes: RequirePermission, rules: {dangling: Warn, manyControllers: Deny}}}
---
{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: clear}, spec: {match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}, blockOwnerDeletion: Clear}}
---
{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: order}, spec: {waves: [{name: pods, resources: [{apiGroups: [""], resources: [pods]}]}]}}`

// Whatever comes is answered: with an HTTP error, or with a response to this very request. What is
// no review is never allowed, a refusal has a code and a reason, and a patch goes only where the
// API server takes one.
func FuzzReview(f *testing.F) {
	seeds(f)
	api := apitest.New()
	api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}")
	for _, doc := range strings.Split(fuzzed, "\n---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			f.Fatal(err)
		}
		api.Put(live.Resource(kind.Kind).Resource, doc)
	}
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if !strings.HasSuffix(r.Path, "/subjectaccessreviews") {
			return nil
		}
		return &apitest.Reply{Code: 201, Body: map[string]any{"kind": "SubjectAccessReview",
			"apiVersion": "authorization.k8s.io/v1",
			"status":     map[string]any{"allowed": len(r.Body)%2 == 0}}}
	})
	state, err := live.New(live.Options{Config: api.Config()})
	if err != nil {
		f.Fatal(err)
	}
	h, err := New(Options{Config: api.Config(), Policies: state, Takes: takes, Facts: someFacts()})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.Cleanup(cancel)
	changed := state.Changed()
	go func() { _ = state.Run(ctx) }() // it ends with ctx, and without an error
	<-changed
	if n := len(state.Set().Statuses()); n != 5 || slices.ContainsFunc(state.Problems(), func(p policies.Problem) bool {
		return !p.Warning
	}) {
		f.Fatalf("%d policies, problems %v", n, state.Problems())
	}
	f.Fuzz(func(t *testing.T, webhook, query string, body []byte) {
		if Paths[policies.Webhook(webhook)] == "" {
			return
		}
		checkAnswer(t, h, policies.Webhook(webhook), query, body)
		api.Requests() // not to be kept
	})
}

func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(data), "\nreview ")[1:] {
			part, _, _ = strings.Cut(part, "\n----")
			path, text, _ := strings.Cut(part, "\n")
			fields, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				f.Fatal(err)
			}
			for asked, p := range Paths {
				if p == "/"+path {
					f.Add(string(asked), "timeout=10s", []byte(request(","+string(fields[1:len(fields)-1]))))
				}
			}
		}
	}
	for _, body := range []string{
		"", "{}", "null", "[]", request(""), request(aDelete), request(aDelete)[:50],
		request(strings.Replace(aDelete, "oldObject", "object", 1)),
		request(`,"operation":"UPDATE","object":{"metadata":{"ownerReferences":[1,null,{"uid":"b","blockOwnerDeletion":true}]}},"oldObject":{"metadata":[]}`),
		request(`,"operation":"CREATE","object":{"metadata":{"finalizers":[null,{}],"labels":3}},"oldObject":null`),
		request(strings.ReplaceAll(aDelete, "web", "веб\u0000")),
		strings.Repeat("[", 20_000), request(aDelete + `,"options":` + strings.Repeat(`{"a":`, 20_000)),
		request(`,"operation":"DELETE","oldObject":{"metadata":{"labels":` +
			strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}}"),
	} {
		f.Add("delete.weir.dev", "", []byte(body))
		f.Add("stamp.weir.dev", "timeout=0.5s", []byte(body))
		f.Add("owners.weir.dev", "timeout=x", []byte(body))
		f.Add("clear.owners.weir.dev", "", []byte(body))
		f.Add("cascade.weir.dev", "", []byte(body))
	}
}

func checkAnswer(t *testing.T, h http.Handler, asked policies.Webhook, query string, body []byte) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/"+testToken+Paths[asked],
		strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.URL.RawQuery = query
	r.Header.Set("Content-Type", aJSON)
	w := recorded(h, r)
	if w.Code == http.StatusInternalServerError && strings.Contains(w.Body.String(), "its log says where") {
		t.Fatal("the handler panicked")
	}
	if w.Code != http.StatusOK {
		if w.Code < 400 || strings.TrimSpace(w.Body.String()) == "" {
			t.Errorf("an error without a reason: %d %q", w.Code, w.Body)
		}
		return
	}
	var in, out admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &in); err != nil || in.Request == nil || in.Request.UID == "" ||
		in.APIVersion != "admission.k8s.io/v1" {
		t.Fatalf("answered what is no review: %s", w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Response == nil {
		t.Fatalf("the answer is no review: %s", w.Body)
	}
	a := out.Response
	if a.UID != in.Request.UID || out.Request != nil {
		t.Errorf("the answer is not to this request: %s", w.Body)
	}
	mutating := asked == policies.WebhookAddFinalizer || asked == policies.WebhookClear
	if len(a.Patch) > 0 && (!mutating || !a.Allowed || in.Request.Operation == admissionv1.Delete || a.PatchType == nil) {
		t.Errorf("a patch where the API server takes none: %s", w.Body)
	}
	if !a.Allowed && (a.Result == nil || a.Result.Code < 400 || a.Result.Message == "" || a.Result.Reason == "") {
		t.Errorf("a refusal without a code or a reason: %s", w.Body)
	}
	switch in.Request.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete:
	default:
		t.Errorf("answered a %s: %s", in.Request.Operation, w.Body)
	}
}

// Of any review that an API server can write, decode makes what the decoder alone makes of it.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, _, _ string, body []byte) {
		if _, err := decode(body); err != nil {
			if json.Unmarshal(body, &admissionv1.AdmissionReview{}) == nil {
				t.Fatalf("%s: %v", body, err)
			}
			return
		}
		var review admissionv1.AdmissionReview
		if json.Unmarshal(body, &review) != nil {
			return // the objects of it are of no type that there is, which FromRequest says
		}
		written, err := json.Marshal(review)
		if err != nil {
			return
		}
		var want admissionv1.AdmissionReview
		if err := json.Unmarshal(written, &want); err != nil {
			t.Fatal(err)
		}
		got, err := decode(written)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Fatalf("%s (-decoder +ours):\n%s", written, diff)
		}
	})
}

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies"
)

// BenchmarkReview compares a review as weir judges it with one that is allowed unseen, both with everything around them:
// routing, reading, decoding, encoding, metrics. They take turns, so that what else the machine does hits both.
//
//	go test ./webhook -run '^$' -bench Review
func BenchmarkReview(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		for _, about := range []string{"a tenth", "all"} {
			if n == 1 && about != "all" {
				continue
			}
			b.Run(fmt.Sprintf("%d policies, %s about the object", n, about), func(b *testing.B) {
				set := benchSet(b, n, about == "all")
				weir := benchRouter(b, func(_ *http.Request, q policies.Question) answer {
					d := set.Decide(q)
					if !d.Allowed {
						return refused(d, 0)
					}
					return allowed(d)
				})
				empty := benchRouter(b, func(*http.Request, policies.Question) answer { return allowed(policies.Decision{Allowed: true}) })
				body := benchDelete(b)
				var judged, unseen []time.Duration
				for b.Loop() {
					unseen = append(unseen, benchOne(b, empty, body))
					judged = append(judged, benchOne(b, weir, body))
				}
				b.ReportMetric(benchQuantile(judged, 50), "p50-µs")
				b.ReportMetric(benchQuantile(judged, 99), "p99-µs")
				b.ReportMetric(benchQuantile(unseen, 50), "empty-p50-µs")
				b.ReportMetric(benchQuantile(unseen, 99), "empty-p99-µs")
				b.ReportMetric(benchQuantile(judged, 50)/benchQuantile(unseen, 50), "p50-ratio")
				b.ReportMetric(benchQuantile(judged, 99)/benchQuantile(unseen, 99), "p99-ratio")
			})
		}
	}
}

// benchSet are n policies, each with a selector, a condition and a limit, of which none refuses: of all, or of one in
// ten, the object is one that they are about.
func benchSet(b *testing.B, n int, all bool) *policies.Set {
	b.Helper()
	var text strings.Builder
	for i := range n {
		resource := "deployments"
		if !all && i%10 != 0 {
			resource = fmt.Sprintf("kind%d", i)
		}
		fmt.Fprintf(&text, "---\n{apiVersion: weir.dev/v1alpha1, kind: DeletionPolicy, metadata: {name: p%d}, spec: {priority: %d, match: {resources: [{apiGroups: [apps], resources: [%s]}], "+
			"objectSelector: {matchLabels: {env: prod}}, conditions: [{name: c, expression: \"oldObject.metadata.name.startsWith('w') && request.userInfo.username != 'bob'\"}]}, "+
			"propagation: {default: Foreground}}}\n", i, i, resource)
	}
	sources, problems := policies.Parse("bench", []byte(text.String()))
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	set := policies.Build(nil, sources, policies.Options{})
	if problems := slices.DeleteFunc(set.Problems(), func(p policies.Problem) bool { return p.Warning }); len(problems) > 0 {
		b.Fatal(problems)
	}
	return set
}

func benchRouter(b *testing.B, judge reviewer) http.Handler {
	b.Helper()
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	return router(func(policies.Webhook) reviewer { return judge }, func() error { return nil }, m, logr.Discard())
}

// benchDelete is the review of the DELETE of an object as large as Deployments are.
func benchDelete(b *testing.B) []byte {
	b.Helper()
	object, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "uid": "6f1c2f0e-4c4a-4a86-9f55-0b6f3f9f1d11", "resourceVersion": "1234",
			"labels": map[string]any{"app": "web", "env": "prod"}, "finalizers": []any{"weir.dev/propagation"},
			"annotations": map[string]any{"note": strings.Repeat("x", 2000)},
		},
		"spec": map[string]any{"replicas": 3, "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.com/web:1.2.3",
					"ports": []any{map[string]any{"containerPort": 8080}}, "env": []any{map[string]any{"name": "A", "value": "b"}}}}}}},
		"status": map[string]any{"replicas": 3, "readyReplicas": 3, "observedGeneration": 7},
	})
	if err != nil {
		b.Fatal(err)
	}
	resource := metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	kind := metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID("b1c9a1a4-0f2b-4c7e-8a43-0f0f5a1b2c3d"), Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Name: "web", Namespace: "shop", Operation: admissionv1.Delete, UserInfo: authenticationv1.UserInfo{Username: "alice", Groups: []string{"system:authenticated"}},
			OldObject: runtime.RawExtension{Raw: object}, Options: runtime.RawExtension{Raw: []byte(`{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","propagationPolicy":"Background"}`)},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

func benchOne(b *testing.B, h http.Handler, body []byte) time.Duration {
	b.Helper()
	r := httptest.NewRequest(http.MethodPost, Paths[policies.WebhookDelete]+"?timeout=10s", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	began := time.Now()
	h.ServeHTTP(w, r)
	took := time.Since(began)
	if w.Code != http.StatusOK || !bytes.Contains(w.Body.Bytes(), []byte(`"allowed":true`)) {
		b.Fatalf("%d %s", w.Code, w.Body)
	}
	return took
}

func benchQuantile(d []time.Duration, percent int) float64 {
	slices.Sort(d)
	return float64(d[len(d)*percent/100].Nanoseconds()) / 1000
}

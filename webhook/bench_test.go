package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/policies"
)

// BenchmarkReview compares a review as weir judges it with one by a handler that allows everything:
// it decodes the review and answers, and nothing is around it. own-ratio is to weir's own handler
// when nothing is judged. They take turns, so that what else the machine does hits all.
//
//	go test ./webhook -run '^$' -bench Review
func BenchmarkReview(b *testing.B) {
	// As in the process (cmd/ballast.go): without it there is a collection every fifty reviews, and
	// the highest hundredth is of those that one fell upon.
	held := make([]byte, 64<<20)
	defer runtime.KeepAlive(held)
	for _, n := range []int{1, 100, 1000} {
		for _, c := range crowds {
			if n == 1 && c.name != "all about it" {
				continue
			}
			b.Run(fmt.Sprintf("%d policies, %s", n, c.name), func(b *testing.B) {
				set := c.policies(b, n)
				weir := benchRouter(b, func(_ *http.Request, q policies.Question) answer {
					q.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "shop",
						"labels": map[string]any{"team": "team0"}}}
					d := set.Decide(q)
					if !d.Allowed {
						return refused(d, 0)
					}
					return allowed(d)
				})
				unjudged := benchRouter(b, func(*http.Request, policies.Question) answer {
					return allowed(policies.Decision{Allowed: true})
				})
				body := benchDelete(b)
				var judged, empty, own []time.Duration
				for b.Loop() {
					empty = append(empty, benchOne(b, http.HandlerFunc(allowEverything), body))
					judged = append(judged, benchOne(b, weir, body))
					own = append(own, benchOne(b, unjudged, body))
				}
				b.ReportMetric(0, "ns/op") // of three requests
				b.ReportMetric(benchQuantile(empty, 50), "empty-p50-µs")
				b.ReportMetric(benchQuantile(judged, 50), "p50-µs")
				b.ReportMetric(benchQuantile(judged, 50)/benchQuantile(empty, 50), "p50-ratio")
				b.ReportMetric(benchQuantile(judged, 99)/benchQuantile(empty, 99), "p99-ratio")
				b.ReportMetric(benchQuantile(judged, 50)/benchQuantile(own, 50), "own-ratio")
			})
		}
	}
}

// BenchmarkGarbage compares ways to have garbage collected more seldom while reviews are judged: as
// Go does it, with the ballast of the process (cmd/ballast.go), and by the knobs that follow the
// limit of a container. What each costs is told beside what it saves.
//
//	go test ./webhook -run '^$' -bench Garbage
func BenchmarkGarbage(b *testing.B) {
	percent := func(n int) func() func() {
		return func() func() {
			before := debug.SetGCPercent(n)
			return func() { debug.SetGCPercent(before) }
		}
	}
	for _, way := range []struct {
		name  string
		begin func() (end func())
	}{
		{"as Go does it", func() func() { return func() {} }},
		{"64 MiB of ballast", func() func() {
			held := make([]byte, 64<<20)
			return func() { runtime.KeepAlive(held) }
		}},
		{"GOGC=400", percent(400)},
		{"GOGC=off, GOMEMLIMIT nine tenths of 256 MiB", func() func() {
			before := debug.SetMemoryLimit(256 << 20 * 9 / 10)
			end := percent(-1)()
			return func() {
				debug.SetMemoryLimit(before)
				end()
			}
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			set := crowds[1].policies(b, 100)
			weir := benchRouter(b, func(_ *http.Request, q policies.Question) answer { return allowed(set.Decide(q)) })
			body := benchDelete(b)
			end := way.begin()
			defer end()
			runtime.GC()
			var before, after, now runtime.MemStats
			runtime.ReadMemStats(&before)
			var took []time.Duration
			var most uint64
			for b.Loop() {
				if took = append(took, benchOne(b, weir, body)); len(took)%1000 == 0 {
					runtime.ReadMemStats(&now)
					most = max(most, now.HeapInuse)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(benchQuantile(took, 50), "p50-µs")
			b.ReportMetric(benchQuantile(took, 99), "p99-µs")
			b.ReportMetric(float64(after.NumGC-before.NumGC)*1000/float64(len(took)), "collections/1000")
			b.ReportMetric(float64(max(most, after.HeapInuse))/(1<<20), "heap-MiB")
		})
	}
}

// allowEverything is the least that a webhook can be.
func allowEverything(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // a recorder takes everything
}

// crowds are ways in which there can be many policies, of which none refuses: each has a selector
// and a condition, and sets a propagation. A %d is the number of the policy.
var crowds = []crowd{
	{"a tenth about the object", "kind%d", "objectSelector: {matchLabels: {env: prod}}",
		"oldObject.metadata.name != 'bob'"},
	{"all about it", "deployments", "objectSelector: {matchLabels: {env: prod}}", "oldObject.metadata.name != 'bob'"},
	{"each with a condition of its own, all hold", "deployments", "objectSelector: {matchLabels: {env: prod}}",
		"oldObject.metadata.name != 'bob%d'"},
	{"each with a condition of its own, none holds", "deployments", "objectSelector: {matchLabels: {env: prod}}",
		"oldObject.metadata.name == 'bob%d'"},
	{"each about namespaces of its own", "deployments", "namespaceSelector: {matchLabels: {team: 'team%d'}}",
		"oldObject.metadata.name != 'bob%d'"},
}

type crowd struct{ name, resource, selector, condition string }

func (c crowd) policies(b *testing.B, n int) *policies.Set {
	b.Helper()
	var text strings.Builder
	for i := range n {
		resource := c.resource
		if i%10 == 0 {
			resource = "deployments"
		}
		text.WriteString(strings.ReplaceAll(fmt.Sprintf(
			"---\n{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p%%d}, spec: {priority: %%d, match: "+
				"{resources: [{apiGroups: [apps], resources: [%s]}], "+
				"%s, matchConditions: [{name: c, expression: \"oldObject.metadata.name.startsWith('w') && %s\"}]}, propagation: "+
				"{default: Foreground}}}\n", resource, c.selector, c.condition), "%d", strconv.Itoa(i)))
	}
	sources, problems := policies.Parse("bench", []byte(text.String()))
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	set := policies.Build(nil, sources, policies.Options{})
	if problems := slices.DeleteFunc(set.Problems(), func(p policies.Problem) bool {
		return p.Warning
	}); len(problems) > 0 {
		b.Fatal(problems)
	}
	return set
}

func benchRouter(b *testing.B, judge reviewer) http.Handler {
	b.Helper()
	m, err := newMetrics(prometheus.NewRegistry(), func() *policies.Set {
		return policies.Build(nil, nil, policies.Options{})
	})
	if err != nil {
		b.Fatal(err)
	}
	return router(func(policies.Webhook) reviewer {
		return judge
	}, takes, func() error { return nil }, newIntake(refusing), m, newSayer(logr.Discard()))
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
					"ports": []any{map[string]any{"containerPort": 8080}},
					"env":   []any{map[string]any{"name": "A", "value": "b"}}}}}}},
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
			UID: types.UID("b1c9a1a4-0f2b-4c7e-8a43-0f0f5a1b2c3d"), Kind: kind, Resource: resource, RequestKind: &kind,
			RequestResource: &resource,
			Name:            "web", Namespace: "shop", Operation: admissionv1.Delete,
			UserInfo:  authenticationv1.UserInfo{Username: "alice", Groups: []string{"system:authenticated"}},
			OldObject: apiruntime.RawExtension{Raw: object},
			Options: apiruntime.RawExtension{Raw: []byte(
				`{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","propagationPolicy":"Background"}`)},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

func benchOne(b *testing.B, h http.Handler, body []byte) time.Duration {
	b.Helper()
	r := httptest.NewRequest(http.MethodPost, "/"+testToken+Paths[policies.WebhookDelete]+"?timeout=10s",
		bytes.NewReader(body))
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

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/weir-dev/weir/policies"
)

func testMetrics(t testing.TB) *metrics {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry(), func() *policies.Set {
		return policies.Build(nil, nil, policies.Options{})
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// counted are the series of a counter, as label values in the order of their names, and how far
// each is.
func counted(t testing.TB, c prometheus.Collector) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if n := m.GetCounter().GetValue(); n > 0 { // some are there from the beginning
				out[strings.Join(labels, " ")] = n
			}
		}
	}
	return out
}

// handler is the HTTP of the webhook around a judge.
func handler(t testing.TB, m *metrics, judge reviewer) http.Handler {
	t.Helper()
	return router(func(policies.Webhook) reviewer {
		return judge
	}, takes, func() error { return nil }, newIntake(refusing), m, newSayer(logr.Discard()))
}

// testToken is the token that paths begin with.
const testToken = "0123456789ABCDEFGHIJKLMNOP"

func takes(token string) bool { return token == testToken }

// yes allows everything.
func yes(*http.Request, policies.Question) answer {
	return answer{result: "allowed", response: &admissionv1.AdmissionResponse{Allowed: true}}
}

// post sends a review to a path below the token.
func post(h http.Handler, path, contentType string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/"+testToken+path, body)
	r.Header.Set("Content-Type", contentType)
	return recorded(h, r)
}

func recorded(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// request is a review with the fields of a request, in JSON.
func request(fields string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"` + fields + `}}`
}

const (
	aDelete = `,"operation":"DELETE","resource":{"group":"apps","version":"v1","resource":"deployments"},"name":"web","namespace":"shop","oldObject":{"metadata":{"name":"web"}}`
	aJSON   = "application/json"
)

func TestMalformedReviews(t *testing.T) {
	for name, c := range map[string]struct {
		contentType string
		body        string
		code        int
		text        string
	}{
		"another content type": {"text/plain", request(aDelete), 415,
			`content type is "text/plain", want application/json`},
		"no content type": {"", request(aDelete), 415, `content type is "", want application/json`},
		"half a content type": {"application/json; charset", request(aDelete), 415,
			`content type is "application/json; charset", want application/json`},
		"nothing": {aJSON, "", 400, "decode the review: unexpected end of JSON input"},
		"no JSON": {aJSON, "hello", 400,
			"decode the review: invalid character 'h' looking for beginning of value"},
		"half a review": {aJSON, request(aDelete)[:80], 400, "decode the review: unexpected end of JSON input"},
		"two reviews": {aJSON, request(aDelete) + request(aDelete), 400,
			"decode the review: invalid character '{' after top-level value"},
		"a list": {aJSON, "[]", 400,
			"decode the review: json: cannot unmarshal array into Go value of type v1.AdmissionReview"},
		"null": {aJSON, "null", 400, "this is  , want an AdmissionReview of admission.k8s.io/v1"},
		"another version": {aJSON, strings.Replace(request(aDelete), "/v1", "/v1beta1", 1), 400,
			"this is admission.k8s.io/v1beta1 AdmissionReview, want an AdmissionReview of admission.k8s.io/v1"},
		"another kind": {aJSON, strings.Replace(request(aDelete), "AdmissionReview", "ConversionReview", 1),
			400, "this is admission.k8s.io/v1 ConversionReview, want an AdmissionReview of admission.k8s.io/v1"},
		"no request": {aJSON, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400,
			"the review has no request, or its request no uid"},
		"no uid": {aJSON, strings.Replace(request(aDelete), `"uid":"u"`, `"uid":""`, 1), 400,
			"the review has no request, or its request no uid"},
		"an uid of another type": {aJSON, strings.Replace(request(aDelete), `"uid":"u"`, `"uid":{}`, 1), 400,
			"decode the review: json: cannot unmarshal object into Go struct field AdmissionRequest.request.uid of type " +
				"types.UID"},
		"no operation": {aJSON, request(""), 400, `judge a request for : unknown operation ""`},
		"CONNECT": {aJSON, request(strings.Replace(aDelete, "DELETE", "CONNECT", 1)), 400,
			`judge a request for deployments.apps: unknown operation "CONNECT"`},
		"DELETE without oldObject": {aJSON, request(strings.Replace(aDelete, "oldObject", "object", 1)), 400,
			"judge a DELETE of deployments.apps: the request has no oldObject"},
		"DELETE of null": {aJSON, request(strings.Replace(aDelete, `{"metadata":{"name":"web"}}`, "null", 1)),
			400, "judge a DELETE of deployments.apps: the request has no oldObject"},
		"DELETE of a list": {aJSON, request(strings.Replace(aDelete, `{"metadata":{"name":"web"}}`, "[1]", 1)), 400,
			"decode oldObject of the request: is a list, not an object"},
		"options that are a string": {aJSON, request(aDelete + `,"options":"x"`), 400,
			"decode options of the request: is a string, not an object"},
		"UPDATE without oldObject": {aJSON, request(`,"operation":"UPDATE","object":{}`), 400,
			"judge an UPDATE of : the request has no object or no oldObject"},
		"CREATE without an object": {aJSON, request(`,"operation":"CREATE","oldObject":{}`), 400,
			"judge a CREATE of : the request has no object"},
	} {
		t.Run(name, func(t *testing.T) {
			m := testMetrics(t)
			w := post(handler(t, m, yes), "/delete", c.contentType, strings.NewReader(c.body))
			if w.Code != c.code || w.Body.String() != c.text+"\n" {
				t.Errorf("%d %q\nwant %d %q", w.Code, w.Body, c.code, c.text+"\n")
			}
			for series, n := range counted(t, m.requests) {
				if !strings.Contains(series, "malformed delete.weir.dev") || n != 1 {
					t.Errorf("counted %g times as %q", n, series)
				}
			}
		})
	}
}

func TestWellFormedReviewsPass(t *testing.T) {
	for name, c := range map[string]struct{ contentType, fields string }{
		"a delete":                {aJSON, aDelete},
		"with a charset":          {"application/json; charset=utf-8", aDelete},
		"with unknown fields":     {aJSON, aDelete + `,"weather":"fine"`},
		"of an unknown kind":      {aJSON, strings.ReplaceAll(aDelete, "deployments", "gizmos")},
		"without an API group":    {aJSON, strings.ReplaceAll(aDelete, `"group":"apps",`, "")},
		"of a deletecollection":   {aJSON, strings.Replace(aDelete, `"name":"web",`, `"name":"",`, 1)},
		"of names in Cyrillic":    {aJSON, strings.ReplaceAll(aDelete, "web", "веб-сайт")},
		"of names in Arabic":      {aJSON, strings.ReplaceAll(aDelete, "web", "موقع")},
		"of names in Chinese":     {aJSON, strings.ReplaceAll(aDelete, "web", "网站")},
		"of names with emojis":    {aJSON, strings.ReplaceAll(aDelete, "web", "🦫\u200d💧")},
		"of names with NUL":       {aJSON, strings.ReplaceAll(aDelete, "web", `\u0000`)},
		"of names with line ends": {aJSON, strings.ReplaceAll(aDelete, "web", `a\r\nb\"`)},
		"of names of no alphabet": {aJSON, strings.ReplaceAll(aDelete, "web", "\xff\xfe")},
		"of an empty object":      {aJSON, strings.ReplaceAll(aDelete, `{"metadata":{"name":"web"}}`, "{}")},
		"of metadata of any type": {aJSON, strings.ReplaceAll(aDelete, `{"metadata":{"name":"web"}}`, `{"metadata":[3]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := post(handler(t, testMetrics(t), yes), "/delete", c.contentType, strings.NewReader(request(c.fields)))
			var got admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || got.Response == nil ||
				!got.Response.Allowed || got.Response.UID != "u" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if got.APIVersion != "admission.k8s.io/v1" || got.Kind != "AdmissionReview" ||
				w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s %s of type %s", got.APIVersion, got.Kind, w.Header().Get("Content-Type"))
			}
		})
	}
}

// Whoever may edit an object can make its review too large, so that does not get past a policy that
// refuses, whatever its failurePolicy.
func TestReviewsThatAreTooLargeAreRefused(t *testing.T) {
	large := map[string]func() io.Reader{
		"as it comes": func() io.Reader { return padded(fewBytes + 1) },
		"decoded": func() io.Reader {
			return strings.NewReader(request(aDelete + `,"weather":[` + strings.Repeat(`{"":0},`, mostBody/7-100) + `0]`))
		},
	}
	for name, body := range large {
		for path, c := range map[string]struct{ refuses, refused bool }{
			"/delete":  {true, true},
			"/cascade": {true, true},
			"/owners":  {true, true},
			"/stamp":   {true, false}, // nothing waits for the finalizer
			"/warn":    {false, false},
		} {
			if name == "decoded" && path != "/delete" { // the answer depends on the path, and not on why it is too large
				continue
			}
			at := path
			if path == "/warn" {
				at = "/delete"
			}
			in := newIntake(func(policies.Part) bool { return c.refuses })
			if name != "decoded" { // which takes as much only where it is almost the largest
				in.most = fewBytes
			}
			m := testMetrics(t)
			h := router(func(policies.Webhook) reviewer {
				return yes
			}, takes, func() error { return nil }, in, m, newSayer(logr.Discard()))
			w := post(h, at, aJSON, body())
			if c.refused && codeOf(t, w) != 413 || !c.refused && w.Code != 413 {
				t.Errorf("%s, %s: %d %.200s", name, path, w.Code, w.Body)
			}
			if got := fmt.Sprint(counted(t, m.requests)); !strings.Contains(got, "large") {
				t.Errorf("%s, %s: counted as %s", name, path, got)
			}
		}
	}
}

// Its client is still sending when it is answered: the answer has to arrive all the same, or the
// failurePolicy would decide.
func TestAnswerToALargeReviewArrives(t *testing.T) {
	in := newIntake(refusing)
	in.most = fewBytes
	s := listening(t, in, yes)
	for i := range 3 {
		resp, err := http.Post(s.URL+"/"+testToken+"/delete", aJSON, padded(mostBody)) //nolint:noctx // it is local
		if err != nil {
			t.Fatalf("review %d: %v", i, err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"code":413`) {
			t.Errorf("review %d: %d %.200s, %v", i, resp.StatusCode, body, err)
		}
	}
}

// The largest that an API server can send of what etcd takes: an edit has the object twice, and
// each character may be written in six.
func TestLargestReviewIsTaken(t *testing.T) {
	text := `"` + strings.Repeat(`\u003c`, 1536<<10) + `"`
	object := `{"metadata":{"name":"web"},"data":{"html":` + text + `}}`
	w := post(handler(t, testMetrics(t), yes), "/delete", aJSON,
		strings.NewReader(request(`,"operation":"UPDATE","name":"web","object":`+object+`,"oldObject":`+object)))
	if code := codeOf(t, w); code != 200 {
		t.Errorf("%d", code)
	}
}

// fewBytes is a limit that is quickly reached. That the real one is large enough is tested above.
const fewBytes = 1 << 20

// padded is a review of so many bytes.
func padded(size int) io.Reader {
	begin, end := strings.TrimSuffix(request(aDelete), "}}"), `,"weather":""}}`
	fill := size - len(begin) - len(end)
	return io.MultiReader(strings.NewReader(begin), strings.NewReader(end[:len(end)-3]),
		strings.NewReader(strings.Repeat("x", fill)), strings.NewReader(`"}}`))
}

func TestBodyLimit(t *testing.T) {
	for name, c := range map[string]struct {
		body io.Reader
		code int
		text string
	}{
		"the most": {padded(fewBytes), 200, ""},
		"without end": {io.MultiReader(padded(fewBytes), iotest.ErrReader(errors.New("the limit was read past"))), 400,
			"read the review: the limit was read past\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newIntake(refusing)
			in.most = fewBytes
			h := router(func(policies.Webhook) reviewer { return yes }, takes, func() error { return nil }, in,
				testMetrics(t), newSayer(logr.Discard()))
			w := post(h, "/delete", aJSON, c.body)
			if w.Code != c.code || c.text != "" && w.Body.String() != c.text {
				t.Errorf("%d %.200s, want %d %s", w.Code, w.Body, c.code, c.text)
			}
		})
	}
}

// A stack that overflows ends the process, and no middleware recovers from that. Here it would end
// the test's.
func TestReviewsThatAreNestedTooDeeplyAreNoAnswer(t *testing.T) {
	h := handler(t, testMetrics(t), yes)
	const most = mostBody / 4 // five million levels
	deep := func(size int) string { return strings.Repeat("[", size) }
	for name, body := range map[string]string{
		"nothing else":           deep(most),
		"objects":                strings.Repeat(`{"a":`, most/5),
		"an unknown field":       request(`,"weather":` + deep(most)),
		"the oldObject":          request(strings.Replace(aDelete, `{"metadata":{"name":"web"}}`, deep(most), 1)),
		"the oldObject's fields": request(strings.Replace(aDelete, `{"name":"web"}`, `{"labels":`+deep(most), 1)),
		"the options":            request(aDelete + `,"options":` + deep(most)),
		"the user":               request(aDelete + `,"userInfo":{"extra":{"a":` + deep(most)),
		"well-formed":            request(aDelete + `,"weather":` + deep(20_000) + strings.Repeat("]", 20_000)),
	} {
		if _, err := decode([]byte(body)); err == nil || err.Error() != "it is nested too deeply" {
			t.Errorf("%s: %.200v", name, err)
		}
		if w := post(h, "/delete", aJSON, strings.NewReader(body)); w.Code != 400 && w.Code != 413 && codeOf(t, w) != 413 {
			t.Errorf("%s: %d %.200s", name, w.Code, w.Body)
		}
	}
	// The next one is answered, and so is what is as deep as an API server sends.
	object := func(depth int) string {
		lists := deep(depth-1) + strings.Repeat("]", depth-1)
		return strings.Replace(aDelete, `{"metadata":{"name":"web"}}`, `{"metadata":{"name":"web"},"spec":`+lists+"}", 1)
	}
	for name, c := range map[string]struct {
		fields string
		code   int
	}{
		"flat":                      {aDelete, 200},
		"deep options":              {aDelete + `,"options":{"a":` + deep(9_990) + strings.Repeat("]", 9_990) + "}", 200},
		"as deep as what is stored": {object(policies.MostDepth), 200},
		"deeper":                    {object(policies.MostDepth + 1), 400},
	} {
		if w := post(h, "/delete", aJSON, strings.NewReader(request(c.fields))); w.Code != c.code {
			t.Errorf("%s: %d %.200s, want %d", name, w.Code, w.Body, c.code)
		}
	}
}

func TestBodyThatBreaksOff(t *testing.T) {
	w := post(handler(t, testMetrics(t), yes), "/delete", aJSON,
		io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if w.Code != 400 || w.Body.String() != "read the review: unexpected EOF\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// An UPDATE holds the object twice, and JSON escapes every quote and line break in it.
func TestTwoObjectsOfThreeMebibytesPass(t *testing.T) {
	content, err := json.Marshal(strings.Repeat("\"\n", 3<<19))
	if err != nil {
		t.Fatal(err)
	}
	object := func(name string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"x":%s}}`, name, content)
	}
	sources, problems := policies.Parse("test",
		[]byte(
			"{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: large}, spec: {match: {resources: "+
				"[{apiGroups: [apps], resources: [deployments]}], "+
				"matchConditions: [{name: large, expression: 'size(oldObject.data.x) == 3145728'}]}, propagation: {default: "+
				"Foreground}}}"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	set := policies.Build(nil, sources, policies.Options{})
	var got policies.Question
	w := post(handler(t, testMetrics(t), func(r *http.Request, q policies.Question) answer {
		got = q
		return yes(r, q)
	}), "/stamp", aJSON,
		strings.NewReader(
			request(`,"operation":"UPDATE","resource":{"group":"apps","version":"v1","resource":"deployments"},"object":`+
				object("now")+`,"oldObject":`+object("before"))))
	if w.Code != 200 {
		t.Fatalf("%d %.200s", w.Code, w.Body)
	}
	for name, o := range map[string]map[string]any{"now": got.Object, "before": got.OldObject} {
		if o["metadata"].(map[string]any)["name"] != name {
			t.Errorf("%s: metadata %v", name, o["metadata"])
		}
	}
	// Conditions see all 3 MiB.
	if d := set.Decide(got); !d.Allowed || d.Finalizers != policies.AddFinalizers || len(d.Errors) > 0 {
		t.Errorf("%+v, want the finalizer", d)
	}
}

func TestPathsAndMethods(t *testing.T) {
	m := testMetrics(t)
	h := handler(t, m, yes)
	unknown := 0.0
	for at, want := range map[string]int{
		"POST T/stamp": 200, "POST T/delete": 200, "POST T/owners": 200, "POST T/clear": 200,
		"POST T/delete-ignore": 200, "POST T/delete-fail": 200, "POST T/delete-everywhere": 200, "POST T/owners-fail": 200,
		"POST T/delete-": 404, "POST T/delete-all": 404,
		"POST T/": 404, "POST T": 404, "POST T/stamp/": 404, "POST T/Stamp": 404, "POST T/metrics": 404,
		"POST T/stamp/../delete": 404, "POST T/T/stamp": 404,
		"GET T/stamp": 404, "PUT T/delete": 404, "DELETE T/owners": 404, "HEAD T/clear": 404,
		"POST /": 404, "POST /stamp": 404, "POST /delete": 404, "POST //delete": 404, "POST /x/delete": 404,
		"GET /x/delete": 404, "PUT /delete": 404,
		"POST T0/delete": 404, "POST /0123456789ABCDEFGHIJKLMNO/delete": 404, "POST /0123456789abcdefghijklmnop/delete": 404,
	} {
		method, path, _ := strings.Cut(strings.Replace(at, " T", " /"+testToken, 1), " ")
		// Of a path that is none, nothing is read.
		body := io.Reader(strings.NewReader(request(aDelete)))
		if want == 404 {
			body = iotest.ErrReader(errors.New("the body was read"))
			unknown++
		}
		r := httptest.NewRequest(method, path, body)
		r.Header.Set("Content-Type", aJSON)
		w := recorded(h, r)
		if w.Code != want || want == 404 &&
			w.Body.String() != "there is no webhook at this path: those that there are, are in the webhook configurations\n" {
			t.Errorf("%s: %d %s, want %d", at, w.Code, w.Body, want)
		}
	}
	if got := counted(t, m.requests)["  unknown"] + counted(t, m.requests)[" unknown "]; got != unknown {
		t.Errorf("%v, want %g unknown", counted(t, m.requests), unknown)
	}
}

func TestEachPathIsItsWebhook(t *testing.T) {
	h := router(func(asked policies.Webhook) reviewer {
		return func(_ *http.Request, q policies.Question) answer {
			return answer{response: &admissionv1.AdmissionResponse{Allowed: true,
				Warnings: []string{string(asked) + string(q.Part)}}}
		}
	}, takes, func() error { return nil }, newIntake(refusing), testMetrics(t), newSayer(logr.Discard()))
	for path, want := range map[string]string{"/stamp": "stamp.weir.dev", "/delete": "delete.weir.dev",
		"/owners": "owners.weir.dev", "/clear": "clear.owners.weir.dev",
		"/delete-ignore": "delete.weir.devignore", "/delete-fail": "delete.weir.devfail",
		"/owners-everywhere": "owners.weir.deveverywhere"} {
		if w := post(h, path, aJSON, strings.NewReader(request(aDelete))); !strings.Contains(w.Body.String(),
			`["`+want+`"]`) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

func TestNotReadyIsNoAnswer(t *testing.T) {
	ready := errors.New("waiting for the first list of namespaces")
	h := router(func(policies.Webhook) reviewer {
		return yes
	}, takes, func() error { return ready }, newIntake(refusing), testMetrics(t), newSayer(logr.Discard()))
	w := post(h, "/delete", aJSON, strings.NewReader(request(aDelete)))
	if want := "weir is starting: waiting for the first list of namespaces\n"; w.Code != 503 || w.Body.String() != want {
		t.Errorf("%d %q, want 503 %q", w.Code, w.Body, want)
	}
	ready = nil
	if w := post(h, "/delete", aJSON, strings.NewReader(request(aDelete))); w.Code != 200 {
		t.Errorf("when ready: %d %s", w.Code, w.Body)
	}
}

func TestJudgeThatFailsIsNoAnswer(t *testing.T) {
	w := post(handler(t, testMetrics(t), func(*http.Request, policies.Question) answer {
		return answer{err: errors.New("etcd is away")}
	}),
		"/delete", aJSON, strings.NewReader(request(aDelete)))
	if w.Code != 500 || w.Body.String() != "etcd is away\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestPanicIsOneBadAnswer(t *testing.T) {
	m := testMetrics(t)
	h := handler(t, m, func(r *http.Request, q policies.Question) answer {
		if q.Name == "web" {
			panic("of all things")
		}
		return yes(r, q)
	})
	for round := 1; round <= 2; round++ {
		w := post(h, "/delete", aJSON, strings.NewReader(request(aDelete)))
		if want := "weir failed while it judged this request; its log says where\n"; w.Code != 500 ||
			w.Body.String() != want {
			t.Errorf("%d %q, want 500 %q", w.Code, w.Body, want)
		}
		if w := post(h, "/delete", aJSON,
			strings.NewReader(request(strings.ReplaceAll(aDelete, "web", "other")))); w.Code != 200 {
			t.Errorf("the next request: %d %s", w.Code, w.Body)
		}
		if n := counted(t, m.panics)[""]; n != float64(round) {
			t.Errorf("%g panics are counted, want %d", n, round)
		}
	}
}

func TestHandlerMayEndAConnection(t *testing.T) {
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // what was panicked with
			t.Errorf("panic %v", p)
		}
	}()
	m := testMetrics(t)
	post(handler(t, m, func(*http.Request, policies.Question) answer {
		panic(http.ErrAbortHandler)
	}), "/delete", aJSON, strings.NewReader(request(aDelete)))
	t.Error("no panic came through")
}

func TestTimeoutOfTheAPIServerIsHonoured(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": 9 * time.Second, "?timeout=10s": 9 * time.Second, "?timeout=2s": 1800 * time.Millisecond,
		"?timeout=500ms": 450 * time.Millisecond,
		"?timeout=30s":   27 * time.Second, "?timeout=1h": 27 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			w := post(handler(t, testMetrics(t), func(r *http.Request, _ policies.Question) answer {
				<-r.Context().Done() // a judge that takes for ever
				return answer{err: context.Cause(r.Context())}
			}), "/delete"+query, aJSON, strings.NewReader(request(aDelete)))
			if took := time.Since(began); took != want || w.Code != 500 || w.Body.String() != "context deadline exceeded\n" {
				t.Errorf("%q: %d %q after %s, want %s", query, w.Code, w.Body, took, want)
			}
		})
	}
	for _, bad := range []string{"soon", "10", "0s", "-1s"} {
		w := post(handler(t, testMetrics(t), yes), "/delete?timeout="+bad, aJSON, strings.NewReader(request(aDelete)))
		if want := fmt.Sprintf("timeout is %q, want a duration such as 10s\n", bad); w.Code != 400 ||
			w.Body.String() != want {
			t.Errorf("%s: %d %q, want 400 %q", bad, w.Code, w.Body, want)
		}
	}
}

// Whoever reaches the webhook must not be able to make series without end.
func TestOperationsInMetricsAreKnownOnes(t *testing.T) {
	m := testMetrics(t)
	h := handler(t, m, yes)
	for i := range 20 {
		post(h, "/delete", aJSON, strings.NewReader(request(strings.Replace(aDelete, "DELETE", fmt.Sprintf("X%d", i), 1))))
	}
	if got := fmt.Sprint(counted(t, m.requests)); got != "map[other malformed delete.weir.dev:20]" {
		t.Errorf("series %s", got)
	}
}

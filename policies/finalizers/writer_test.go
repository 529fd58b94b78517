package finalizers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	roles      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	jobs       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	wanted     = policies.Wanted{By: "p", Finalizers: []string{v1beta1.Finalizer}}
	jobMark    = policies.Wanted{By: "p", Finalizers: []string{v1beta1.Finalizer, metav1.FinalizerDeleteDependents}}
)

// stored is an object with more metadata, in flow style.
func stored(gvr schema.GroupVersionResource, metadata string) string {
	return fmt.Sprintf("{apiVersion: %q, kind: X, metadata: {name: a, namespace: shop%s}}", gvr.GroupVersion().String(), metadata)
}

// seen is the metadata of an object as the server has it.
func seen(t *testing.T, api *apitest.Server, gvr schema.GroupVersionResource) *metav1.ObjectMeta {
	t.Helper()
	o := api.Get(gvr.GroupResource().String() + "/shop/a")
	if o == nil {
		t.Fatal("the object is gone")
	}
	return MetaOf(o)
}

func writer(t *testing.T, api *apitest.Server) *Writer {
	t.Helper()
	s, err := New(api.Config(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func patches(api *apitest.Server) []string {
	var out []string
	for _, r := range api.Requests() {
		if r.Method == "PATCH" {
			out = append(out, r.Body)
		}
	}
	return out
}

const (
	weirs = `"weir.dev/propagation"`
	// when the bubble's clock begins
	armed = `"annotations":{"weir.dev/armed-at":"2000-01-01T00:00:00Z"},`
	seal  = `"resourceVersion":"2","uid":"uid-a"}}`
)

// A patch without a uid would be one of whatever has the name.
func TestObjectWithoutUIDIsLeftAlone(t *testing.T) {
	api := apitest.New()
	api.Put("configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop}}")
	s, err := New(api.Config(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Put(t.Context(), configMaps, &metav1.ObjectMeta{Namespace: "shop", Name: "one"}, policies.Wanted{Finalizers: []string{v1beta1.Finalizer}})
	if want := "change the finalizers of configmaps shop/one: which one is not known, it has no uid"; result != Failed || err == nil || err.Error() != want {
		t.Errorf("%s, %v", result, err)
	}
	if got := api.Requests(); len(got) > 0 {
		t.Errorf("asked the API server: %v", got)
	}
}

func TestWhatIsPutAndTaken(t *testing.T) {
	for name, c := range map[string]struct {
		gvr    schema.GroupVersionResource
		had    string
		wanted *policies.Wanted // nil: take
		want   Result
		patch  string
	}{
		"put on a plain object":       {configMaps, "", &wanted, Done, `{"metadata":{` + armed + `"finalizers":[` + weirs + `],` + seal},
		"put beside others":           {configMaps, ", finalizers: [b, a]", &wanted, Done, `{"metadata":{` + armed + `"finalizers":["b","a",` + weirs + `],` + seal},
		"put on one that has it":      {configMaps, ", finalizers: [weir.dev/propagation]", &wanted, Already, ""},
		"put both":                    {jobs, "", &jobMark, Done, `{"metadata":{` + armed + `"finalizers":[` + weirs + `,"foregroundDeletion"],` + seal},
		"put what is missing":         {jobs, ", finalizers: [weir.dev/propagation]", &jobMark, Done, `{"metadata":{` + armed + `"finalizers":[` + weirs + `,"foregroundDeletion"],` + seal},
		"put beside orphan":           {jobs, ", finalizers: [orphan]", &jobMark, Done, `{"metadata":{` + armed + `"finalizers":["orphan",` + weirs + `],` + seal},
		"put on one with orphan":      {jobs, ", finalizers: [orphan, weir.dev/propagation]", &jobMark, Already, ""},
		"put on a terminating one":    {configMaps, ", finalizers: [b], deletionTimestamp: '2000-01-01T00:00:00Z'", &wanted, Gone, ""},
		"take off the only finalizer": {configMaps, ", finalizers: [weir.dev/propagation]", nil, Done, `{"metadata":{"finalizers":null,` + seal},
		"put, of no time":             {configMaps, ", finalizers: [weir.dev/propagation], annotations: {weir.dev/armed-at: x}", &wanted, Done, `{"metadata":{"annotations":{"weir.dev/armed-at":"2000-01-01T00:00:00Z"},` + seal},
		"put, of a time to come":      {configMaps, ", finalizers: [weir.dev/propagation], annotations: {weir.dev/armed-at: '2000-01-01T00:00:11Z'}", &wanted, Done, `{"metadata":{"annotations":{"weir.dev/armed-at":"2000-01-01T00:00:00Z"},` + seal},
		"put, of a time that is over": {configMaps, ", finalizers: [weir.dev/propagation], annotations: {weir.dev/armed-at: '1999-01-01T00:00:00Z'}", &wanted, Already, ""},
		"take off one of several":     {configMaps, ", finalizers: [b, weir.dev/propagation, a]", nil, Done, `{"metadata":{"finalizers":["b","a"],` + seal},
		"take with the annotation":    {configMaps, ", finalizers: [weir.dev/propagation], annotations: {weir.dev/armed-at: x}", nil, Done, `{"metadata":{"annotations":{"weir.dev/armed-at":null},"finalizers":null,` + seal},
		"take the annotation alone":   {configMaps, ", finalizers: [b], annotations: {weir.dev/armed-at: x}", nil, Done, `{"metadata":{"annotations":{"weir.dev/armed-at":null},` + seal},
		"take off both":               {jobs, ", finalizers: [foregroundDeletion, weir.dev/propagation]", nil, Done, `{"metadata":{"finalizers":null,` + seal},
		"take off a role's":           {roles, ", finalizers: [weir.dev/propagation], annotations: {weir.dev/armed-at: x}", nil, Done, `{"metadata":{"finalizers":null,` + seal},
		"take no role's annotation":   {roles, ", annotations: {weir.dev/armed-at: x}", nil, Already, ""},
		"take nothing":                {configMaps, ", finalizers: [b]", nil, Already, ""},
		"take none of a user's":       {jobs, ", finalizers: [foregroundDeletion]", nil, Already, ""},
		// What is under way goes on as the other finalizer says.
		"take off a terminating one": {jobs, ", finalizers: [weir.dev/propagation, foregroundDeletion], deletionTimestamp: '2000-01-01T00:00:00Z'", nil, Done,
			`{"metadata":{"finalizers":["foregroundDeletion"],` + seal},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New()
				api.Put(c.gvr.Resource, stored(c.gvr, c.had))
				s, m := writer(t, api), seen(t, api, c.gvr)
				var got Result
				var err error
				if c.wanted == nil {
					got, err = s.Take(t.Context(), c.gvr, m)
				} else {
					got, err = s.Put(t.Context(), c.gvr, m, *c.wanted)
				}
				if got != c.want || err != nil {
					t.Errorf("%s, %v; want %s", got, err, c.want)
				}
				var want []string
				if c.patch != "" {
					want = []string{c.patch}
				}
				if diff := cmp.Diff(want, patches(api)); diff != "" {
					t.Errorf("patches (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What the API server answers to a patch.
func TestWhatBecomesOfAPatch(t *testing.T) {
	for name, c := range map[string]struct {
		answer *apitest.Reply
		want   Result
		err    string
	}{
		"its kind is not served":  {apitest.Refuse(404, "NotFound", "the server could not find the requested resource"), Failed, "change the finalizers of configmaps shop/a: the server could not find the requested resource"},
		"a webhook is against it": {apitest.Refuse(403, "Forbidden", "no"), Failed, "change the finalizers of configmaps shop/a: no"},
		"it has changed":          {apitest.Refuse(409, "Conflict", "the object has been modified"), Changed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New()
			api.Put("configmaps", stored(configMaps, ""))
			s, m := writer(t, api), seen(t, api, configMaps)
			api.Intercept(func(apitest.Request) *apitest.Reply { return c.answer })
			got, err := s.Put(t.Context(), configMaps, m, wanted)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != c.want || text != c.err {
				t.Errorf("%s, %q; want %s, %q", got, text, c.want, c.err)
			}
			if after := fmt.Sprint(MetaOf(api.Get("configmaps/shop/a")).Finalizers); after != "[]" {
				t.Errorf("its finalizers are %s", after)
			}
		})
	}
}

func TestWhichObjectsCannotCarryTheFinalizer(t *testing.T) {
	for name, c := range map[string]struct {
		answer *apitest.Reply // nil: it gets the finalizer
		want   bool
	}{
		"it gets it":                  {nil, false},
		"it is invalid with it":       {apitest.Refuse(422, "Invalid", "metadata.annotations: Too long: may not be more than 262144 bytes"), true},
		"it is too large to be sent":  {apitest.Refuse(413, "RequestEntityTooLarge", "limit is 3145728"), true},
		"it is too large for etcd":    {apitest.Refuse(500, "", "etcdserver: request is too large"), true},
		"Weir may not write the kind": {apitest.Refuse(403, "Forbidden", "no"), false},
		"too much is asked for":       {apitest.Refuse(429, "TooManyRequests", "later"), false},
		"the API server fails":        {apitest.Refuse(500, "InternalError", "no"), false},
	} {
		api := apitest.New()
		api.Put("configmaps", stored(configMaps, ""))
		s, m := writer(t, api), seen(t, api, configMaps)
		api.Intercept(func(apitest.Request) *apitest.Reply { return c.answer })
		if _, err := s.Put(t.Context(), configMaps, m, wanted); CannotCarry(err) != c.want {
			t.Errorf("%s: %t after %v", name, !c.want, err)
		}
	}
}

// TestWhatWasJudgedIsChangedAsItWas: a decision about an object as it was is carried out on nothing
// else: an object that has changed since is left alone, without a read and a second try, as is one
// that has gone.
func TestWhatWasJudgedIsChangedAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		had       string // what the object has at the judgement
		meanwhile func(*apitest.Server)
		put, take Result
	}{
		"as it was": {"", func(*apitest.Server) {}, Done, Already},
		"with ours": {", finalizers: [weir.dev/propagation]", func(*apitest.Server) {}, Already, Done},
		"changed":   {"", func(api *apitest.Server) { api.Put("configmaps", stored(configMaps, ", labels: {a: b}")) }, Changed, Already},
		"changed, with ours": {", finalizers: [weir.dev/propagation]", func(api *apitest.Server) {
			api.Put("configmaps", stored(configMaps, ", labels: {a: b}, finalizers: [weir.dev/propagation]"))
		}, Already, Changed},
		"gone": {"", func(api *apitest.Server) { api.Remove("configmaps/shop/a") }, Gone, Already},
		"another has its name": {"", func(api *apitest.Server) {
			api.Remove("configmaps/shop/a")
			api.Put("configmaps", stored(configMaps, ", uid: another"))
		}, Changed, Already},
	} {
		for verb, result := range map[string]Result{"put": c.put, "take": c.take} {
			api := apitest.New()
			api.Put("configmaps", stored(configMaps, c.had))
			s, judged := writer(t, api), seen(t, api, configMaps)
			c.meanwhile(api)
			api.Requests()
			var got Result
			var err error
			if verb == "put" {
				got, err = s.Put(t.Context(), configMaps, judged, wanted)
			} else {
				got, err = s.Take(t.Context(), configMaps, judged)
			}
			if got != result || err != nil {
				t.Errorf("%s %s: %s, %v; want %s", verb, name, got, err, result)
			}
			if sent := api.Requests(); len(sent) > 1 || len(sent) == 0 != (result == Already) {
				t.Errorf("%s %s: %v", verb, name, sent)
			}
		}
	}
}

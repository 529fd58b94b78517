package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// Only what Kubernetes itself serves lists at a resourceVersion for certain, and only numbers can
// be compared.
func TestLandmarksAreWhatWasWrittenLastOfKubernetesOwnKinds(t *testing.T) {
	var kinds []Followed
	for _, k := range []struct{ group, resource, version string }{
		{"", "configmaps", "10"}, {"apps", "deployments", "50"}, {"example.com", "widgets", "90"}, {"coordination.k8s.io", "leases", "30"},
		{"", "secrets", "x7"}, {"", "pods", ""}, {"batch", "jobs", "20"}, {"", "services", "40"}, {"k8s.io.example.com", "gadgets", "99"},
	} {
		f := &Feed{Kind: schema.GroupResource{Group: k.group, Resource: k.resource}}
		if k.version != "" { // nothing was written while it was watched
			f.latest.Store(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", ResourceVersion: k.version}})
		}
		kinds = append(kinds, Followed{f.Kind.WithVersion("v1"), f})
	}
	var got []string
	for _, l := range landmarks(kinds) {
		got = append(got, fmt.Sprintf("%s %d", l.gvr.Resource, l.version))
	}
	if want := []string{"deployments 50", "services 40", "leases 30", "jobs 20"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLandmarkIsMissedOnlyWhereSomethingElseIsListedAtItsVersion: that it is missed voids all that
// is known of the cluster, so no answer that could mean something else may say it.
func TestLandmarkIsMissedOnlyWhereSomethingElseIsListedAtItsVersion(t *testing.T) {
	list := func(version string, objects ...string) string {
		var items []string
		for _, v := range objects {
			items = append(items, fmt.Sprintf(`{"metadata": {"name": "one", "namespace": "shop", "resourceVersion": %q}}`, v))
		}
		return fmt.Sprintf(`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": %q}, "items": [%s]}`, version, strings.Join(items, ","))
	}
	refusal := func(code int, reason, cause string) string {
		return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d, "message": "no", "details": {"causes": [{"reason": %q}]}}`, reason, code, cause)
	}
	for name, c := range map[string]struct {
		code    int
		body    string
		broken  error // instead of an answer
		missing bool
		err     bool
	}{
		"as it was":                          {code: 200, body: list("70", "70")},
		"there is none":                      {code: 200, body: list("70"), missing: true},
		"one of another version":             {code: 200, body: list("70", "60"), missing: true},
		"a list at another version":          {code: 200, body: list("90")},
		"a list without a version":           {code: 200, body: list("")},
		"too long ago":                       {code: http.StatusGone, body: refusal(410, "Expired", "")},
		"not come so far":                    {code: http.StatusGatewayTimeout, body: refusal(504, "Timeout", string(metav1.CauseTypeResourceVersionTooLarge))},
		"it may not be listed":               {code: http.StatusForbidden, body: refusal(403, "Forbidden", "")},
		"throttled":                          {code: http.StatusTooManyRequests, body: refusal(429, "TooManyRequests", "")},
		"what stands before it is not there": {code: http.StatusServiceUnavailable, body: refusal(503, "ServiceUnavailable", "")},
		"its storage fails":                  {code: http.StatusInternalServerError, body: refusal(500, "InternalError", ""), err: true},
		"it takes too long":                  {code: http.StatusGatewayTimeout, body: refusal(504, "Timeout", ""), err: true},
		"the connection broke":               {broken: errors.New("connection reset by peer"), err: true},
		"who asks has ended":                 {broken: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a client tries a broken connection again and again
				var asked string
				client, err := metadata.NewForConfig(&rest.Config{Host: "http://api.test", QPS: -1, Transport: fixture.Tripper(func(r *http.Request) (*http.Response, error) {
					asked = r.URL.Path + " " + r.URL.Query().Get("fieldSelector") + " " + r.URL.Query().Get("resourceVersionMatch") + " " + r.URL.Query().Get("resourceVersion")
					if c.broken != nil {
						return nil, c.broken
					}
					resp := fixture.Reply(r, c.code, "", c.body)
					resp.Header.Set("Content-Type", "application/json")
					return resp, nil
				})})
				if err != nil {
					t.Fatal(err)
				}
				why, err := landmark{fixture.ConfigMaps.WithVersion("v1"), "shop", "one", 70}.missing(t.Context(), client)
				if (why != "") != c.missing || (err != nil) != c.err {
					t.Errorf("%q, %v", why, err)
				}
				if want := "shop/one was written at resourceVersion 70, and there is something else now"; c.missing && why != want {
					t.Errorf("%q, want %q", why, want)
				}
				if want := "/api/v1/namespaces/shop/configmaps metadata.name=one Exact 70"; asked != want {
					t.Errorf("asked for %q, want %q", asked, want)
				}
			})
		})
	}
}

// TestLandmarkIsAskedForByItsWholeName: a Role may be called nearly anything. Asked for by a part
// of its name, it is not there, and whoever may write Roles in one namespace would void all that is
// known of the cluster.
func TestLandmarkIsAskedForByItsWholeName(t *testing.T) {
	for _, name := range []string{"one", "a,", ",", "x,metadata.name!=x", `a\,b`, `a\`, "a=b", "a==b", "a!=b", "metadata.name=a", "two words"} {
		var asked string
		client, err := metadata.NewForConfig(&rest.Config{Host: "http://api.test", QPS: -1, Transport: fixture.Tripper(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.Query().Get("fieldSelector")
			return fixture.Reply(r, http.StatusGone, "", ""), nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		if why, err := (landmark{fixture.ConfigMaps.WithVersion("v1"), "shop", name, 70}).missing(t.Context(), client); why != "" || err != nil {
			t.Errorf("%q: %q, %v", name, why, err)
		}
		selector, err := fields.ParseSelector(asked) // as the API server reads it
		if err != nil {
			t.Errorf("%q: asked for %q: %v", name, asked, err)
			continue
		}
		if value, only := selector.RequiresExactMatch(metav1.ObjectNameField); !only || value != name || len(selector.Requirements()) != 1 {
			t.Errorf("%q: asked for %q, which is %+v", name, asked, selector.Requirements())
		}
	}
}

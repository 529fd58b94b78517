package metaonly

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// served is the configuration for an API server that answers as f says.
func served(t *testing.T, f http.HandlerFunc) *rest.Config {
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

// serving is a client of an API server that answers as f says.
func serving(t *testing.T, f http.HandlerFunc) *Client { return clientOf(t, served(t, f)) }

func clientOf(t *testing.T, config *rest.Config) *Client {
	h, err := Connections(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(config, h, h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stream answers a watch with frames, each after its length.
func stream(frames ...[]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
		for _, f := range frames {
			if _, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(f))), f...)); err != nil {
				return
			}
		}
	}
}

// TestWatchBringsEachObject in order, and ends as client-go's does.
func TestWatchBringsEachObject(t *testing.T) {
	all := samples()
	long := usual()
	long.Annotations["long"] = strings.Repeat("x", 100_000) // more than client-go's first buffer holds
	c := serving(t, stream(
		frameOf(t, "ADDED", all["usual"]), frameOf(t, "BOOKMARK", all["bookmark"]), frameOf(t, "MODIFIED", long),
		frameOf(t, "MODIFIED", all["being deleted"]),
		frameOf(t, "DELETED", all["bare"]), frameOf(t, "ERROR", &metav1.Status{Message: "too old", Code: http.StatusGone})))
	w, err := c.Kind(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "").Watch(t.Context(),
		metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []watch.Event
	for e := range w.ResultChan() {
		if m, ok := e.Object.(*metav1.PartialObjectMetadata); ok {
			e.Object = dropped(*m)
		}
		got = append(got, e)
	}
	want := []watch.Event{
		{Type: watch.Added, Object: all["usual"]}, {Type: watch.Bookmark, Object: all["bookmark"]},
		{Type: watch.Modified, Object: long},
		{Type: watch.Modified, Object: all["being deleted"]}, {Type: watch.Deleted, Object: all["bare"]},
		{Type: watch.Error, Object: &metav1.Status{Message: "too old", Code: http.StatusGone}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got)\n%s", diff)
	}
}

// TestWatchAsksAsClientGoDoes: the same request, whatever the group and the options.
func TestWatchAsksAsClientGoDoes(t *testing.T) {
	var asked []string
	record := func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, fmt.Sprint(r.Method, r.URL, r.Header["Accept"], r.Header["User-Agent"]))
		stream()(w, r)
	}
	config := served(t, record)
	ours := clientOf(t, config)
	theirs, err := metadata.NewForConfigAndClient(config, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionResource{{Version: "v1", Resource: "pods"},
		{Group: "apps", Version: "v1", Resource: "replicasets"}} {
		for _, o := range []metav1.ListOptions{
			{}, {ResourceVersion: "5", TimeoutSeconds: new(int64(300)), AllowWatchBookmarks: true},
			{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				AllowWatchBookmarks: true, LabelSelector: "a=b"},
		} {
			asked = nil
			for _, watch := range []func(context.Context, metav1.ListOptions) (watch.Interface, error){
				ours.Kind(kind, "").Watch, theirs.Resource(kind).Watch} {
				w, err := watch(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				for range w.ResultChan() { // until it ends
				}
			}
			if len(asked) != 2 || asked[0] != asked[1] {
				t.Errorf("%s: asked\n%s", kind, strings.Join(asked, "\n"))
			}
		}
	}
}

// TestJSONIsRead where an API server has nothing else.
func TestJSONIsRead(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","uid":"u"}}}`)
	})
	w, err := c.Kind(schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: "things"}, "").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := <-w.ResultChan()
	if m, ok := e.Object.(*metav1.PartialObjectMetadata); !ok || e.Type != watch.Added || m.Name != "a" || m.UID != "u" {
		t.Errorf("got %v", e)
	}
}

// TestReachAsksOnce for an object that is not there: whether the watch cache has come so far is the
// answer, be it that client-go would wait and ask again.
func TestReachAsksOnce(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		ok   bool
	}{"it has": {http.StatusNotFound, true}, "it has not": {http.StatusGatewayTimeout, false}} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			m := serving(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.String())
				w.Header().Set("Content-Type", runtime.ContentTypeJSON)
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(c.code)
				reason := map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound,
					http.StatusGatewayTimeout: metav1.StatusReasonTimeout}[c.code]
				_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "code": %d, "reason": %q}`, c.code, reason)
			})
			err := m.Kind(schema.GroupVersionResource{Group: "apps", Version: "v1",
				Resource: "deployments"}, "").Reach(t.Context(), "shop", "7")
			if c.ok != (err == nil) {
				t.Errorf("the answer is %v, want one that is good: %t", err, c.ok)
			}
			if diff := cmp.Diff([]string{"/apis/apps/v1/namespaces/shop/deployments/weir-asks-for-nothing?resourceVersion=7"},
				asked); diff != "" {
				t.Errorf("requests (-want +have):\n%s", diff)
			}
		})
	}
}

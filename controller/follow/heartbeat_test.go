package follow

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestLeaseMustComeAfterWhatTheWatchOfLeasesHasShown: a Lease that was renewed after its storage
// was restored may have come further than it was last read. What the watch has shown since gives it
// away.
func TestLeaseMustComeAfterWhatTheWatchOfLeasesHasShown(t *testing.T) {
	for name, c := range map[string]struct {
		read, reached, shown, now uint64 // as it was last read, how far the watch is, as it shows the Lease, as it is now
		answer                    int
		stale                     bool
		says                      string
		err                       bool
	}{
		"it goes on":                         {read: 100, reached: 160, shown: 150, now: 170},
		"it was not renewed":                 {read: 150, reached: 160, shown: 150, now: 150},
		"the watch is behind":                {read: 100, reached: 90, shown: 80, now: 150},
		"it went back":                       {read: 100, reached: 160, shown: 150, now: 90, says: "was seen at 100 before"},
		"it went back, and was renewed":      {read: 100, reached: 160, shown: 150, now: 105, says: "had come to 160 and showed it at 150"},
		"nobody watches":                     {read: 100, now: 105},
		"the watch has not shown it":         {read: 100, reached: 160, now: 105},
		"it was found out before":            {read: 100, reached: 160, shown: 150, now: 105, stale: true},
		"it is not there any more":           {read: 100, reached: 160, shown: 150, answer: http.StatusNotFound},
		"it may not be read":                 {read: 100, reached: 160, shown: 150, answer: http.StatusForbidden},
		"the API server has too much to do":  {read: 100, reached: 160, shown: 150, answer: http.StatusTooManyRequests, err: true},
		"the storage does not answer":        {read: 100, reached: 160, shown: 150, answer: http.StatusInternalServerError, err: true},
		"somebody before it does not answer": {read: 100, reached: 160, shown: 150, answer: http.StatusServiceUnavailable, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := metadata.NewForConfig(&rest.Config{Host: "http://api.test", QPS: -1, Transport: fixture.Tripper(func(r *http.Request) (*http.Response, error) {
				body := fmt.Sprintf(`{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "l", "namespace": "kube-system", "uid": "lease", "resourceVersion": "%d"}}`, c.now)
				code := http.StatusOK
				if c.answer != 0 {
					code, body = c.answer, fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d}`,
						map[int]string{404: "NotFound", 403: "Forbidden", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}[c.answer], c.answer)
				}
				resp := fixture.Reply(r, code, "", body)
				resp.Header.Set("Content-Type", "application/json")
				return resp, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			s := NewStore()
			kind := leases.GroupResource()
			s.Apply(graph.Serving{Resources: []graph.Resource{{Group: kind.Group, Resource: kind.Resource, Kind: "Lease", Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}}})
			if c.shown != 0 {
				s.Apply(graph.Observed{Object: &graph.Object{Kind: kind, UID: "lease", Namespace: "kube-system", Name: "l", ResourceVersion: fmt.Sprint(c.shown)}})
			}
			f := &Feed{Kind: kind, Store: s}
			f.Reached.Store(c.reached)
			b := newHeartbeat(client)
			b.name, b.uid, b.version, b.stale = "l", "lease", c.read, c.stale
			why, err := b.contradicts(t.Context(), f)
			if (err != nil) != c.err || (why == "") != (c.says == "") || !strings.Contains(why, c.says) {
				t.Errorf("%q, %v", why, err)
			}
			if forgotten := b.name == ""; forgotten != (c.answer == http.StatusNotFound || c.answer == http.StatusForbidden) {
				t.Errorf("it is looked for anew: %t", forgotten)
			}
		})
	}
}

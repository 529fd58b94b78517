package request

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// TestRequestThatIsThrottledIsNotSentAgain by client-go: it is told at once, as the API server says
// it, in plain text.
func TestRequestThatIsThrottledIsNotSentAgain(t *testing.T) {
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if sent.Add(1); sent.Load()%3 > 0 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: -1}
	config.Wrap(Unretried)
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	in := client.Resource(fixture.ConfigMaps.WithVersion("v1")).Namespace("shop")
	_, listed := in.List(t.Context(), metav1.ListOptions{})
	_, patched := in.Patch(t.Context(), "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	for _, err := range []error{listed, patched} {
		if v, _ := judge(fixture.ConfigMaps, err); !apierrors.IsTooManyRequests(err) || v != throttledByServer {
			t.Errorf("verdict %d: %v", v, err)
		}
	}
	if sent.Load() != 2 {
		t.Errorf("%d were sent, want 2", sent.Load())
	}
}

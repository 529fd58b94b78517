//go:build full

package e2e

import (
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// TestOfObjectsOnlyTheirMetadataIsAskedForAndKept: the reference caches whole
// objects of the built-in kinds (RB 11.15).
func TestOfObjectsOnlyTheirMetadataIsAskedForAndKept(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{Controllers: plane.WithoutCollectors})
	var mu sync.Mutex
	accepts := map[string]int{} // by what was read, and the Accept header
	path := w.kubeconfigThrough("behind", func(api *httputil.ReverseProxy) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			path := strings.Split(strings.Trim(in.URL.Path, "/"), "/")
			if in.Method == http.MethodGet && len(path) > 2 && (path[0] != "apis" || len(path) > 3) { // no discovery
				mu.Lock()
				accepts[in.Header.Get("Accept")+" "+path[len(path)-1]]++
				mu.Unlock()
			}
			api.ServeHTTP(out, in)
		})
	})
	w.weir = w.runWeir(weir.Options{Kubeconfig: path})
	w.settle()
	before := w.heap(0)

	const n, size = 1000, 100_000
	configMaps := w.typed.CoreV1().ConfigMaps(w.namespace)
	data := map[string]string{"data": strings.Repeat("x", size)}
	for _, name := range numbered("large", n) {
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.awaitMetrics("the graph has them", func(m weir.Metrics) bool {
		return m.Sum("weir_graph_objects", "resource", "configmaps") >= n
	})
	// As they come by the watch, and as a list brings them.
	watched := w.heap(before + n*size/10)
	w.again(w.weir)
	listed := w.heap(before + n*size/10)
	t.Logf("%.0f MB of data; heap before %.1f MB, with the objects %.1f MB, after a restart %.1f MB", n*size/1e6, before/1e6, watched/1e6, listed/1e6)

	mu.Lock()
	defer mu.Unlock()
	reads := 0
	for what, times := range accepts {
		reads += times
		if strings.HasSuffix(what, " "+collectorCanary) || strings.HasSuffix(what, " weir-deleted-owners") {
			continue // Weir made them, for what is in them
		}
		for accepted := range strings.SplitSeq(strings.Fields(what)[0], ",") {
			// The last resort of who cannot make metadata; the API server can.
			if !strings.Contains(accepted, "as=PartialObjectMetadata") && accepted != "application/json" {
				t.Errorf("whole objects are asked for: %s", what)
			}
		}
	}
	if reads < 50 {
		t.Errorf("%d reads only", reads)
	}
}

// heap waits until what is in use of weir's heap is less than a bound, 0 for none,
// and returns it. Garbage counts until it is collected.
func (w *fixture) heap(most float64) float64 {
	w.Helper()
	var have float64
	w.awaitMetrics("the heap is small", func(m weir.Metrics) bool {
		have = m.Sum("go_memstats_heap_alloc_bytes")
		return most == 0 || have < most
	})
	return have
}

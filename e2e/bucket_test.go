package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestTreesAreShippedToTheBucket: no delete waits for a bucket that refuses; a leader that starts
// ships what was recorded, and the cluster keeps no chunk of it; it is restored from there; what was
// altered there does not open; what was purged goes from there, too.
func TestTreesAreShippedToTheBucket(t *testing.T) {
	t.Parallel()
	bucket := &s3{objects: map[string][]byte{}}
	server := httptest.NewServer(bucket)
	t.Cleanup(server.Close)
	w, p := newPaired(t, replace, plane.Options{})
	w.archives("")
	if _, err := w.typed.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-archive-bucket"}, StringData: map[string]string{"region": "r", "insecure": "true",
			"endpoint": strings.TrimPrefix(server.URL, "http://"), "bucket": "deleted", "accessKey": "a", "secretKey": "b"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	bucket.down.Store(true)
	w.make("cm a\nsec x owners=(a)\ncm b")
	w.delete("a", background)
	w.awaitGone("a", "x")
	w.treeOf("a", func(tree *unstructured.Unstructured) bool { return prefixIn(tree) == "" })
	bucket.down.Store(false)
	w.again(p.controller)
	tree := w.treeOf("a", func(tree *unstructured.Unstructured) bool { return prefixIn(tree) != "" })
	w.until("its chunk is dropped", func(ctx context.Context) (bool, error) {
		chunks, err := w.dynamic.Resource(archiveChunks).List(ctx, metav1.ListOptions{})
		return err == nil && len(chunks.Items) == 0, err
	})
	w.mustSay(w.mustAsk("restore", tree.GetName(), "--weir-namespace", metav1.NamespaceSystem), "restored configmaps/"+w.namespace+"/a", "restored secrets/"+w.namespace+"/x")

	name := prefixIn(tree) + "/00000"
	bucket.alter(name)
	_, said, code := w.ask(w.plane.Kubeconfig, "restore", tree.GetName(), "--plan", "--weir-namespace", metav1.NamespaceSystem)
	if w.mustSay(said, "chunk 0 of the archived tree "+tree.GetName()+" does not open"); code == 0 {
		t.Error("what was altered was taken")
	}

	w.mustAsk("purge", tree.GetName())
	w.delete("b", background) // there is something to ship
	w.until("it has gone from the bucket", func(context.Context) (bool, error) {
		names := bucket.names("")
		return len(names) == 1 && names[0] != name, nil
	})
}

// treeOf waits for the tree of a root.
func (w *fixture) treeOf(root string, is func(*unstructured.Unstructured) bool) (tree *unstructured.Unstructured) {
	w.Helper()
	w.until("there is a tree of "+root, func(ctx context.Context) (bool, error) {
		list, err := w.dynamic.Resource(deletedTrees).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			tree = &list.Items[i]
			if name, _, _ := unstructured.NestedString(tree.Object, "spec", "root", "name"); name == root && is(tree) {
				return true, nil
			}
		}
		return false, nil
	})
	return tree
}

func prefixIn(tree *unstructured.Unstructured) string {
	prefix, _, _ := unstructured.NestedString(tree.Object, "status", "bucketPrefix")
	return prefix
}

// s3 is a bucket of this name, as far as the leader and kubectl weir use one; it asks nobody who
// they are. Whether a bucket of S3 answers so is what the tests of the archive try.
type s3 struct {
	down    atomic.Bool
	mu      sync.Mutex
	objects map[string][]byte
}

func (b *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.down.Load() {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	from := io.Reader(r.Body)
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		from = httputil.NewChunkedReader(from) // which skips the signature of each piece
	}
	body, err := io.ReadAll(from)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/deleted"), "/")
	if name == "" {
		b.list(w, r.URL.Query().Get("prefix"), r.URL.Query().Get("delimiter"))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.Method {
	case http.MethodPut:
		b.objects[name] = body
		w.Header().Set("ETag", `"e"`)
	case http.MethodDelete:
		delete(b.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
		_, _ = w.Write(b.objects[name]) // who asked has gone
	}
}

// names are the objects below a prefix, sorted.
func (b *s3) names(prefix string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.objects)), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

func (b *s3) list(w http.ResponseWriter, prefix, delimiter string) {
	text := ""
	for _, name := range b.names(prefix) {
		if below, _, cut := strings.Cut(strings.TrimPrefix(name, prefix), "/"); delimiter != "" && cut {
			text += fmt.Sprintf("<CommonPrefixes><Prefix>%s%s/</Prefix></CommonPrefixes>", prefix, below)
			continue
		}
		text += fmt.Sprintf("<Contents><Key>%s</Key></Contents>", name)
	}
	_, _ = fmt.Fprintf(w, "<ListBucketResult>%s</ListBucketResult>", text) // who asked has gone
}

// alter changes the last byte of an object.
func (b *s3) alter(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[name][len(b.objects[name])-1]++
}

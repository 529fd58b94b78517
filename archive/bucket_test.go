package archive

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bucketed is a store with a bucket, which refuses all while down.
func bucketed(t *testing.T) (s *Store, backend *s3mem.Backend, down *atomic.Bool) {
	t.Helper()
	s, client := newStore()
	backend, down = s3mem.New(), &atomic.Bool{}
	if err := backend.CreateBucket("deleted"); err != nil {
		t.Fatal(err)
	}
	s3 := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	secret, err := toUnstructured("Secret",
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: BucketSecret, Namespace: "weir-system"},
			Data: map[string][]byte{"endpoint": []byte(strings.TrimPrefix(server.URL, "http://")), "insecure": []byte("true"),
				"bucket": []byte("deleted"), "accessKey": []byte("a"), "secretKey": []byte("b"), "region": []byte("r")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(secretKind).Namespace("weir-system").Create(t.Context(), secret,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return s, backend, down
}

func TestATreeIsShippedReadAndRemoved(t *testing.T) {
	s, backend, down := bucketed(t)
	b, err := s.Bucket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects := []Object{noise(1, MostSealed), noise(2, 5)}
	tree := treeOf("web")
	if err := s.Write(t.Context(), tree, each(objects, nil)); err != nil {
		t.Fatal(err)
	}
	wantTrees := func(want ...string) {
		t.Helper()
		var got []string
		for name, err := range b.Trees(t.Context(), "c1") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the bucket has %q, want %q", got, want)
		}
	}

	before := *tree
	down.Store(true)
	if err := s.Ship(t.Context(), b, "c1", tree); err == nil {
		t.Error("it was shipped to a bucket that refuses")
	}
	down.Store(false)
	if now, err := s.Get(t.Context(), tree.Name); err != nil || now.Status.BucketPrefix != "" {
		t.Errorf("%+v, %v", now, err)
	}
	for range 2 { // the second time after a kill before the status was written
		tree.Status.BucketPrefix = ""
		if err := s.Ship(t.Context(), b, "c1", tree); err != nil {
			t.Fatal(err)
		}
	}
	wantTrees(tree.Name)
	for _, lost := range []func(name string) error{
		func(name string) error {
			_, err := backend.PutObject("deleted", name, map[string]string{}, strings.NewReader("other"), 5, nil)
			return err
		},
		func(name string) error {
			_, err := backend.DeleteObject("deleted", name)
			return err
		},
	} {
		if err := lost("c1/" + tree.Name + "/00001"); err != nil {
			t.Fatal(err)
		}
		if err := s.DropShipped(t.Context(), b, tree); err == nil || tree.Status.BucketPrefix != "" {
			t.Errorf("a chunk that the bucket does not have is dropped: %v", err)
		}
		if c, err := s.clusterChunk(t.Context(), tree.Name, 1); err != nil || !c.Last {
			t.Errorf("%v, %v", c.Last, err)
		}
		if err := s.Ship(t.Context(), b, "c1", tree); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.DropShipped(t.Context(), b, tree); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.clusterChunk(t.Context(), tree.Name, 0); !apierrors.IsNotFound(err) {
		t.Errorf("a chunk that was shipped stays: %v", err)
	}
	got, err := collect(s.Read(t.Context(), tree.Name))
	if !same(objects, got) || err != nil {
		t.Errorf("%d objects were read, %d written: %v", len(got), len(objects), err)
	}
	// A reader that read the tree before it was shipped finds the chunks where they are now.
	n := 0
	for c, err := range s.chunks(t.Context(), &before) {
		if n++; err != nil || c.Sequence != int32(n-1) {
			t.Error(c.Sequence, err)
		}
	}
	if n != 2 {
		t.Errorf("%d chunks", n)
	}
	down.Store(true)
	if _, err := collect(s.Read(t.Context(), tree.Name)); err == nil {
		t.Error("it was read from a bucket that refuses")
	}
	down.Store(false)
	for _, of := range []string{"c2", "c1"} { // what is another cluster's stays
		wantTrees(tree.Name)
		if err := b.Remove(t.Context(), of, tree.Name); err != nil {
			t.Fatal(err)
		}
	}
	wantTrees()
}

func TestABucketThatIsNamedBadly(t *testing.T) {
	good := map[string]string{"endpoint": "s3.example.com", "bucket": "b", "accessKey": "a", "secretKey": "s"}
	for name, c := range map[string]struct{ key, value, want string }{
		"all is there":     {"region", "r", ""},
		"no endpoint":      {"endpoint", "", "it has no endpoint"},
		"no bucket":        {"bucket", " ", "it has no bucket"},
		"a URL":            {"endpoint", "https://s3.example.com/x", "Endpoint url cannot have fully qualified paths."},
		"a CA that is not": {"ca", "text", "ca has no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{}}
			for k, v := range good {
				secret.Data[k] = []byte(v)
			}
			secret.Data[c.key] = []byte(c.value)
			got := ""
			if _, err := newBucket(secret); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestATreeOfABucketThatIsGone: the message names what to make again.
func TestATreeOfABucketThatIsGone(t *testing.T) {
	s, _ := newStore()
	tree := treeOf("web")
	if err := s.Write(t.Context(), tree, each([]Object{noise(1, 5)}, nil)); err != nil {
		t.Fatal(err)
	}
	tree.Status.BucketPrefix = "c1/" + tree.Name
	if err := s.updateStatus(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	_, err := collect(s.Read(t.Context(), tree.Name))
	if err == nil || !strings.Contains(err.Error(), "weir-system/weir-archive-bucket that names it is gone") {
		t.Error(err)
	}
}

package archive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies/v1beta1"
)

func newStore() (*Store, *fake.FakeDynamicClient) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		treeKind: "DeletedTreeList", chunkKind: "ArchiveChunkList", secretKind: "SecretList"})
	return NewStore(client, "weir-system"), client
}

func treeOf(name string) *v1beta1.DeletedTree {
	return &v1beta1.DeletedTree{Spec: v1beta1.DeletedTreeSpec{Root: v1beta1.DeletedRoot{
		Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: name, UID: "1"}}}
}

func TestATreeIsWrittenReadAndPurged(t *testing.T) {
	s, client := newStore()
	objects := []Object{noise(1, MostSealed), noise(2, 5)}
	tree := treeOf("web")
	if err := s.Write(t.Context(), tree, each(objects, nil)); err != nil {
		t.Fatal(err)
	}
	if !Durable(tree) || !strings.HasPrefix(tree.Name, "web-") || tree.Status.Objects != 2 || tree.Status.Chunks != 2 ||
		tree.Status.Bytes <= MostSealed {
		t.Errorf("%+v", tree)
	}
	if diff := cmp.Diff([]v1beta1.DeletedKind{{Resource: "configmaps", Objects: 2}}, tree.Status.Kinds); diff != "" {
		t.Error(diff)
	}
	got, err := collect(s.Read(t.Context(), tree.Name))
	if !same(objects, got) || err != nil {
		t.Errorf("%d objects were read, %d written: %v", len(got), len(objects), err)
	}
	chunk, err := client.Resource(chunkKind).Get(t.Context(), tree.Name+"-00001", metav1.GetOptions{})
	if err != nil || len(chunk.GetOwnerReferences()) != 1 || chunk.GetOwnerReferences()[0].Name != tree.Name {
		t.Errorf("%v, %v", chunk, err)
	}
	again := treeOf("web")
	if err := s.Write(t.Context(), again, each(objects, nil)); err != nil || again.Name == tree.Name {
		t.Errorf("%s after %s, %v", again.Name, tree.Name, err)
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 2 {
		t.Error(all, err)
	}
	for range 2 {
		if err := s.Purge(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := collect(s.Read(t.Context(), tree.Name)); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

func TestWhatIsNotDurableIsNotRead(t *testing.T) {
	s, client := newStore()
	tree := treeOf("web")
	down := errors.New("the store is down")
	client.PrependReactor("delete", "deletedtrees", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, down
	})
	client.PrependReactor("update", "deletedtrees", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, down
	})
	if err := s.Write(t.Context(), tree, each([]Object{noise(1, 5)}, nil)); !errors.Is(err, down) {
		t.Fatal(err)
	}
	if _, err := collect(s.Read(t.Context(), tree.Name)); err == nil || !strings.Contains(err.Error(), "is not complete") {
		t.Error(err)
	}
}

func TestOfWhatFailsNothingStays(t *testing.T) {
	s, client := newStore()
	ctx, cancel := context.WithCancel(t.Context())
	objects := func(yield func(Object, error) bool) {
		cancel()
		yield(Object{}, errors.New("not listed"))
	}
	if err := s.Write(ctx, treeOf("web"), objects); err == nil || !strings.Contains(err.Error(), "not listed") {
		t.Fatal(err)
	}
	if l, err := client.Resource(treeKind).List(t.Context(), metav1.ListOptions{}); err != nil || len(l.Items) != 0 {
		t.Error(l, err)
	}
}

// TestKilledAtAnyRequestNoHalfIsRead: whatever is the last request of who records, and whether its
// answer came, a tree is whole, or not restored from; and who goes on records all of it.
func TestKilledAtAnyRequestNoHalfIsRead(t *testing.T) {
	objects := []Object{noise(1, 300), noise(2, 5)}
	kills, whole := 0, 0
	for _, answered := range []bool{false, true} {
		for k, alive := 0, false; !alive; k++ {
			kills++
			api := apitest.New()
			client := api.Dying(k, answered)
			err := storeOf(t, client.Config()).Write(t.Context(), treeOf("web"), each(objects, nil))
			if alive = client.Alive(); alive != (err == nil) {
				t.Fatalf("killed: %t, and it says %v", !alive, err)
			}
			s := storeOf(t, api.Config())
			if err := s.Write(t.Context(), treeOf("web"), each(objects[1:], nil)); err != nil {
				t.Fatal(err)
			}
			all, err := s.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			durable := 0
			for _, tree := range all {
				got, err := collect(s.Read(t.Context(), tree.Name))
				if Durable(&tree) != (err == nil) || err == nil && !cmp.Equal(objects, got) && !cmp.Equal(objects[1:], got) {
					t.Errorf("killed at request %d: durable: %t, %d objects, %v", k, Durable(&tree), len(got), err)
				}
				if err == nil {
					durable++
				}
			}
			if durable == 0 {
				t.Errorf("killed at request %d: nothing is whole", k)
			}
			whole += durable
		}
	}
	t.Logf("%d kills, %d whole trees", kills, whole)
}

func storeOf(t *testing.T, config *rest.Config) *Store {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return NewStore(client, "weir-system")
}

func TestAnotherKeyOfTheArchiveIsTold(t *testing.T) {
	s, client := newStore()
	tree := treeOf("web")
	if err := s.Write(t.Context(), tree, each([]Object{noise(1, 5)}, nil)); err != nil {
		t.Fatal(err)
	}
	if err := client.Resource(secretKind).Namespace("weir-system").Delete(t.Context(), KeySecret,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Read(t.Context(), tree.Name)); err == nil ||
		!strings.Contains(err.Error(), "read the archive's key, Secret weir-system/weir-archive-key") {
		t.Error(err)
	}
	if _, err := s.writerKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(s.Read(t.Context(), tree.Name)); err == nil || !strings.Contains(err.Error(), "does not unwrap") {
		t.Error(err)
	}
}

func TestNamesOfTrees(t *testing.T) {
	for name, want := range map[string]string{
		"web": "web-", "system:node:Foo": "system-node-foo-", "a.b": "a-b-",
		"...": "", strings.Repeat("x", 250): strings.Repeat("x", 63) + "-",
	} {
		got := nameOf(v1beta1.DeletedRoot{Name: name})
		if len(got) != len(want)+8 || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s and eight characters", name, got, want)
		}
	}
	if names := []string{nameOf(v1beta1.DeletedRoot{Name: "a"}),
		nameOf(v1beta1.DeletedRoot{Name: "a"})}; len(slices.Compact(names)) != 2 {
		t.Error(names)
	}
}

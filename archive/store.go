package archive

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// KeySecret is the name of the Secret with the archive's key, in Weir's namespace, and keyField the
// key's entry in it.
const (
	KeySecret = "weir-archive-key"
	keyField  = "key"
)

// cleanUp bounds the removal of a tree whose recording failed, even if the context has ended.
const cleanUp = 10 * time.Second

var (
	treeKind   = v1beta1.GroupVersion.WithResource("deletedtrees")
	chunkKind  = v1beta1.GroupVersion.WithResource("archivechunks")
	secretKind = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// ChunkKind is the kind of the parts of a tree.
var ChunkKind = chunkKind.GroupResource()

// Store keeps trees: as objects of the cluster, read and written with the rights of a client, and
// in a bucket.
type Store struct {
	// Room makes room for a chunk of a tree that is being written, or returns why there is none. It
	// may be nil. The tree's status counts what was written of it.
	Room func(ctx context.Context, tree *v1beta1.DeletedTree, more int64) error

	client    dynamic.Interface
	namespace string
}

// NewStore returns a store; namespace is Weir's.
func NewStore(client dynamic.Interface, namespace string) *Store {
	return &Store{client: client, namespace: namespace}
}

// Write records a tree, whose spec is set except the key. It returns when all of it is durable, and
// updates tree. The status that says so is written last; objects may add to it until they end. If
// Write fails, it removes the tree, as far as it can.
func (s *Store) Write(ctx context.Context, tree *v1beta1.DeletedTree, objects iter.Seq2[Object, error]) error {
	archiveKey, err := s.writerKey(ctx)
	if err != nil {
		return err
	}
	tree.Name = nameOf(tree.Spec.Root)
	key, wrapped, err := archiveKey.NewTreeKey(tree.Name)
	if err != nil {
		return err
	}
	tree.Spec.Key = wrapped
	status := tree.Status
	if err := s.create(ctx, treeKind, "DeletedTree", tree); err != nil {
		return fmt.Errorf("write DeletedTree %s: %w", tree.Name, err)
	}
	tree.Status = status
	if err := s.fill(ctx, tree, key, objects); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		defer cancel()
		_ = s.Purge(ctx, tree) // if that fails, the tree stays and is never durable
		return err
	}
	return nil
}

// fill writes the chunks, and then the status that says they are there.
func (s *Store) fill(ctx context.Context, tree *v1beta1.DeletedTree, key Key, objects iter.Seq2[Object, error]) error {
	counts := map[string]int64{}
	for c, err := range Seal(tree.Name, key, counting(objects, counts)) {
		if err != nil {
			return fmt.Errorf("record %s: %w", tree.Name, err)
		}
		chunk := &v1beta1.ArchiveChunk{
			ObjectMeta: metav1.ObjectMeta{Name: chunkName(tree.Name, c.Sequence), OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1beta1.GroupVersion.String(), Kind: "DeletedTree", Name: tree.Name, UID: tree.UID}}},
			Spec: v1beta1.ArchiveChunkSpec{Tree: tree.Name, Sequence: &c.Sequence, Last: &c.Last, Sealed: c.Sealed},
		}
		if s.Room != nil {
			if err := s.Room(ctx, tree, int64(len(c.Sealed))); err != nil {
				return err
			}
		}
		tree.Status.Chunks++
		tree.Status.Bytes += int64(len(c.Sealed))
		if err := s.create(ctx, chunkKind, "ArchiveChunk", chunk); err != nil {
			return fmt.Errorf("write ArchiveChunk %s: %w", chunk.Name, err)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(counts)) {
		tree.Status.Objects += counts[resource]
		tree.Status.Kinds = append(tree.Status.Kinds, v1beta1.DeletedKind{Resource: resource, Objects: counts[resource]})
	}
	meta.SetStatusCondition(&tree.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionDurable,
		Status: metav1.ConditionTrue, Reason: v1beta1.ReasonRecorded, ObservedGeneration: tree.Generation,
		Message: "what went with the object is recorded"})
	return s.updateStatus(ctx, tree)
}

func (s *Store) updateStatus(ctx context.Context, tree *v1beta1.DeletedTree) error {
	u, err := toUnstructured("DeletedTree", tree)
	if err == nil {
		u, err = s.client.Resource(treeKind).UpdateStatus(ctx, u, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the status of DeletedTree %s: %w", tree.Name, err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, tree)
}

// counting counts objects as they pass.
func counting(objects iter.Seq2[Object, error], counts map[string]int64) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range objects {
			if err == nil && !o.Again {
				counts[o.Resource.GroupResource().String()]++
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// Read yields the objects of a tree, in the order in which they were written. An error is the last
// that it yields.
func (s *Store) Read(ctx context.Context, name string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		tree, key, err := s.open(ctx, name)
		if err != nil {
			yield(Object{}, err)
			return
		}
		Open(name, key, s.chunks(ctx, tree))(yield)
	}
}

// open returns a tree that is complete, and its key.
func (s *Store) open(ctx context.Context, name string) (*v1beta1.DeletedTree, Key, error) {
	tree, err := s.Get(ctx, name)
	if err != nil {
		return nil, Key{}, err
	}
	if !Durable(tree) {
		return nil, Key{}, fmt.Errorf("DeletedTree %s is not complete: its objects are still being recorded", name)
	}
	archiveKey, err := s.key(ctx)
	if err != nil {
		return nil, Key{}, fmt.Errorf("read the archive's key, Secret %s/%s: %w", s.namespace, KeySecret, err)
	}
	key, err := archiveKey.TreeKey(name, tree.Spec.Key)
	if err != nil {
		return nil, Key{}, fmt.Errorf("open DeletedTree %s: %w", name, err)
	}
	return tree, key, nil
}

func (s *Store) chunks(ctx context.Context, tree *v1beta1.DeletedTree) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		var bucket *Bucket
		for i := range tree.Status.Chunks {
			c, err := s.chunk(ctx, tree, i, &bucket)
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// clusterChunk reads a chunk from the cluster.
func (s *Store) clusterChunk(ctx context.Context, tree string, sequence int32) (Chunk, error) {
	var c v1beta1.ArchiveChunk
	name := chunkName(tree, sequence)
	if err := s.get(ctx, chunkKind, "", name, &c); err != nil {
		return Chunk{}, fmt.Errorf("read ArchiveChunk %s: %w", name, err)
	}
	return Chunk{
		Sequence: ptr.Deref(c.Spec.Sequence, 0), Last: ptr.Deref(c.Spec.Last, false), Sealed: c.Spec.Sealed,
	}, nil
}

// List returns the catalogue.
func (s *Store) List(ctx context.Context) ([]v1beta1.DeletedTree, error) {
	u, err := s.client.Resource(treeKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list DeletedTrees: %w", err)
	}
	var l v1beta1.DeletedTreeList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.UnstructuredContent(), &l); err != nil {
		return nil, fmt.Errorf("list DeletedTrees: %w", err)
	}
	return l.Items, nil
}

// Get returns one entry of the catalogue.
func (s *Store) Get(ctx context.Context, name string) (*v1beta1.DeletedTree, error) {
	tree := &v1beta1.DeletedTree{}
	if err := s.get(ctx, treeKind, "", name, tree); err != nil {
		return nil, fmt.Errorf("read DeletedTree %s: %w", name, err)
	}
	return tree, nil
}

// Purge deletes a tree. Its key goes at once, so that nobody can read its chunks any more, and
// these become garbage. A tree that is gone is no error.
func (s *Store) Purge(ctx context.Context, tree *v1beta1.DeletedTree) error {
	background := metav1.DeletePropagationBackground
	err := s.client.Resource(treeKind).Delete(ctx, tree.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(tree.UID)), PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("purge DeletedTree %s: %w", tree.Name, err)
	}
	return nil
}

// Durable reports whether everything that goes with the root is recorded.
func Durable(tree *v1beta1.DeletedTree) bool {
	return meta.IsStatusConditionTrue(tree.Status.Conditions, v1beta1.ConditionDurable)
}

// writerKey returns the archive's key, and makes it if there is none.
func (s *Store) writerKey(ctx context.Context) (Key, error) {
	key, err := s.key(ctx)
	if apierrors.IsNotFound(err) {
		immutable := true
		err = s.create(ctx, secretKind, "Secret", &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: KeySecret, Namespace: s.namespace},
			Immutable:  &immutable, Data: map[string][]byte{keyField: NewKeyBytes()}})
		if err == nil || apierrors.IsAlreadyExists(err) {
			key, err = s.key(ctx)
		}
	}
	if err != nil {
		return Key{}, fmt.Errorf("the archive's key, Secret %s/%s: %w", s.namespace, KeySecret, err)
	}
	return key, nil
}

func (s *Store) key(ctx context.Context) (Key, error) {
	secret, err := s.secret(ctx, KeySecret)
	if err != nil {
		return Key{}, err
	}
	return NewKey(secret.Data[keyField])
}

// secret reads a Secret of Weir's namespace.
func (s *Store) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	var secret corev1.Secret
	return &secret, s.get(ctx, secretKind, s.namespace, name, &secret)
}

// get reads an object.
func (s *Store) get(ctx context.Context, r schema.GroupVersionResource, namespace, name string, into any) error {
	u, err := s.client.Resource(r).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// create creates an object, and updates it to what the API server returned.
func (s *Store) create(ctx context.Context, r schema.GroupVersionResource, kind string, o metav1.Object) error {
	u, err := toUnstructured(kind, o)
	if err != nil {
		return err
	}
	if u, err = s.client.Resource(r).Namespace(o.GetNamespace()).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)
}

func toUnstructured(kind string, o metav1.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(v1beta1.GroupVersion.String())
	if kind == "Secret" {
		u.SetAPIVersion("v1")
	}
	u.SetKind(kind)
	return u, nil
}

// nameOf returns a unique name for the tree of an object: the object's own, as far as it is valid,
// and random letters.
func nameOf(root v1beta1.DeletedRoot) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(root.Name))
	return strings.TrimLeft(name[:min(len(name), 63)]+"-"+strings.ToLower(rand.Text()[:8]), "-")
}

func chunkName(tree string, sequence int32) string { return fmt.Sprintf("%s-%05d", tree, sequence) }

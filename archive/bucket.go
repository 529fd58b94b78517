package archive

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies/v1beta1"
)

// BucketSecret is the name of the Secret, in Weir's namespace, that names the bucket to which trees
// are shipped. It has endpoint (HOST or HOST:PORT), bucket, accessKey and secretKey, and where they
// are needed region, ca (PEM), and insecure: "true" for HTTP.
const BucketSecret = "weir-archive-bucket"

// ErrNoBucket says that the cluster has no BucketSecret.
var ErrNoBucket = errors.New("there is no bucket")

// Bucket is S3-compatible storage, which holds sealed chunks: CLUSTER/TREE/SEQUENCE.
type Bucket struct {
	client *minio.Client
	name   string
}

// Bucket returns the bucket that BucketSecret names, or ErrNoBucket if there is none.
func (s *Store) Bucket(ctx context.Context) (*Bucket, error) {
	secret, err := s.secret(ctx, BucketSecret)
	if apierrors.IsNotFound(err) {
		return nil, ErrNoBucket
	}
	var b *Bucket
	if err == nil {
		b, err = newBucket(secret)
	}
	if err != nil {
		return nil, fmt.Errorf("the archive's bucket, Secret %s/%s: %w", s.namespace, BucketSecret, err)
	}
	return b, nil
}

func newBucket(secret *corev1.Secret) (*Bucket, error) {
	of := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	for _, key := range []string{"endpoint", "bucket", "accessKey", "secretKey"} {
		if of(key) == "" {
			return nil, fmt.Errorf("it has no %s", key)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if ca := of("ca"); ca != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("ca has no certificate in PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client, err := minio.New(of("endpoint"), &minio.Options{
		Creds:  credentials.NewStaticV4(of("accessKey"), of("secretKey"), ""),
		Secure: of("insecure") != "true", Region: of("region"), Transport: transport, MaxRetries: 2,
	})
	return &Bucket{client: client, name: of("bucket")}, err
}

// Cluster returns what identifies the cluster in a shared bucket: the uid of the namespace
// kube-system.
func (s *Store) Cluster(ctx context.Context) (string, error) {
	namespaces := s.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	u, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(u.GetUID()), nil
}

// Ship copies the chunks of a tree to a bucket, below the cluster's prefix, and notes that in the
// tree's status. After that nobody reads the ArchiveChunks.
func (s *Store) Ship(ctx context.Context, b *Bucket, cluster string, tree *v1beta1.DeletedTree) error {
	prefix := cluster + "/" + tree.Name
	for c, err := range s.chunks(ctx, tree) {
		if err == nil {
			_, err = b.client.PutObject(ctx, b.name, objectName(prefix, c.Sequence), bytes.NewReader(c.Sealed),
				int64(len(c.Sealed)), minio.PutObjectOptions{ContentType: "application/octet-stream"})
		}
		if err != nil {
			return fmt.Errorf("ship DeletedTree %s: %w", tree.Name, err)
		}
	}
	tree.Status.BucketPrefix = prefix
	return s.updateStatus(ctx, tree)
}

// DropShipped deletes the ArchiveChunks of a tree after reading the same from the bucket. If they
// differ, the status was wrong, and a tree that the cluster has as a whole is to be shipped again.
func (s *Store) DropShipped(ctx context.Context, b *Bucket, tree *v1beta1.DeletedTree) error {
	var left []int32
	var differs error
	for i := range tree.Status.Chunks {
		there, err := s.clusterChunk(ctx, tree.Name, i)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		left = append(left, i)
		shipped, err := b.read(ctx, tree, i)
		lost := minio.ToErrorResponse(errors.Unwrap(err)).Code == minio.NoSuchKey
		switch {
		case err != nil && !lost:
			return err
		case lost, !bytes.Equal(shipped.Sealed, there.Sealed):
			differs = fmt.Errorf("the bucket %s does not have chunk %d of DeletedTree %s", b.name, i, tree.Name)
		}
	}
	if differs != nil && len(left) == int(tree.Status.Chunks) {
		tree.Status.BucketPrefix = ""
		return errors.Join(differs, s.updateStatus(ctx, tree))
	}
	if differs != nil {
		return differs
	}
	for _, i := range left {
		name := chunkName(tree.Name, i)
		err := s.client.Resource(chunkKind).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete ArchiveChunk %s, which was shipped: %w", name, err)
		}
	}
	return nil
}

// read returns one chunk of a tree that was shipped.
func (b *Bucket) read(ctx context.Context, tree *v1beta1.DeletedTree, sequence int32) (Chunk, error) {
	name := objectName(tree.Status.BucketPrefix, sequence)
	object, err := b.client.GetObject(ctx, b.name, name, minio.GetObjectOptions{})
	var sealed []byte
	if err == nil {
		defer func() { _ = object.Close() }()
		sealed, err = io.ReadAll(io.LimitReader(object, MostSealed+1))
	}
	if err != nil {
		return Chunk{}, fmt.Errorf("read %s of the bucket %s: %w", name, b.name, err)
	}
	return Chunk{Sequence: sequence, Last: sequence == tree.Status.Chunks-1, Sealed: sealed}, nil
}

// Trees returns the names of the trees of which a cluster has something in the bucket.
func (b *Bucket) Trees(ctx context.Context, cluster string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: cluster + "/"}) {
			if o.Err != nil {
				yield("", fmt.Errorf("list the bucket %s: %w", b.name, o.Err))
				return
			}
			if name := strings.TrimSuffix(strings.TrimPrefix(o.Key, cluster+"/"), "/"); !yield(name, nil) {
				return
			}
		}
	}
}

// Remove removes what the bucket has of a tree.
func (b *Bucket) Remove(ctx context.Context, cluster, tree string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	below := minio.ListObjectsOptions{Prefix: cluster + "/" + tree + "/", Recursive: true}
	objects := b.client.ListObjects(ctx, b.name, below)
	for o := range objects {
		err := o.Err
		if err == nil {
			err = b.client.RemoveObject(ctx, b.name, o.Key, minio.RemoveObjectOptions{})
		}
		if err != nil {
			return fmt.Errorf("remove the tree %s from the bucket %s: %w", tree, b.name, err)
		}
	}
	return nil
}

func objectName(prefix string, sequence int32) string {
	return fmt.Sprintf("%s/%05d", prefix, sequence)
}

// chunk reads a chunk from where it is, which may have changed since the tree was read. It opens
// the bucket when it needs it first.
func (s *Store) chunk(ctx context.Context, tree *v1beta1.DeletedTree, sequence int32, bucket **Bucket) (Chunk, error) {
	if tree.Status.BucketPrefix == "" {
		c, err := s.clusterChunk(ctx, tree.Name, sequence)
		if !apierrors.IsNotFound(err) {
			return c, err
		}
		now, getErr := s.Get(ctx, tree.Name)
		if getErr != nil || now.Status.BucketPrefix == "" {
			return c, err
		}
		*tree = *now
	}
	if *bucket == nil {
		b, err := s.Bucket(ctx)
		if errors.Is(err, ErrNoBucket) {
			err = fmt.Errorf("DeletedTree %s is in a bucket, and the Secret %s/%s that names it is gone: make it again",
				tree.Name, s.namespace, BucketSecret)
		}
		if err != nil {
			return Chunk{}, err
		}
		*bucket = b
	}
	return (*bucket).read(ctx, tree, sequence)
}

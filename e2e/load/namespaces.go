package load

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A Batch is namespaces that are deleted together, and what is in them.
type Batch struct {
	Namespaces []Object
	Content    []Content
}

// Content is one object in a namespace of a Batch.
type Content struct {
	Kind      Kind
	Namespace string
	Object
}

// Furniture is how many objects every namespace has: the ConfigMap and the
// ServiceAccount that controllers put there. Nothing else runs on the bench's
// plane, so they are made here, and are not made again.
const Furniture = 2

// Furnish makes n namespaces with their furniture and so many ConfigMaps more in
// each. With owned the first of each owned+1 ConfigMaps owns the others.
func Furnish(ctx context.Context, cfg *rest.Config, n, configMaps, owned int) (*Batch, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("furnish namespaces: %w", err)
	}
	per := Furniture + configMaps
	b := &Batch{Namespaces: make([]Object, n), Content: make([]Content, n*per)}
	err = Each(ctx, n, func(ctx context.Context, i int) (err error) {
		b.Namespaces[i], err = newNamespace(ctx, client, "batch")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("furnish namespaces: %w", err)
	}
	add := func(ctx context.Context, i int, owners ...Object) (err error) {
		c := Content{Kind: ConfigMap, Namespace: b.Namespaces[i/per].Name}
		name := fmt.Sprintf("content-%d", i%per)
		switch i % per {
		case 0:
			name = "kube-root-ca.crt"
		case 1:
			c.Kind, name = serviceAccountKind, "default"
		}
		in := client.Resource(c.Kind.GVR()).Namespace(c.Namespace)
		c.Object, err = create(ctx, in, c.Kind, name, nil, nil, owners...)
		b.Content[i] = c
		return err
	}
	ownerOf := func(i int) int { // itself, if it has none
		if k := i%per - Furniture; owned > 0 && k > 0 {
			return i - k%(owned+1)
		}
		return i
	}
	err = Each(ctx, len(b.Content), func(ctx context.Context, i int) error {
		if ownerOf(i) != i {
			return nil
		}
		return add(ctx, i)
	})
	if err == nil {
		err = Each(ctx, len(b.Content), func(ctx context.Context, i int) error {
			if ownerOf(i) == i {
				return nil
			}
			return add(ctx, i, b.Content[ownerOf(i)].Object)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("furnish namespaces: %w", err)
	}
	return b, nil
}

const (
	// drainPatience is long: the reference empties a kind by one request, of
	// which nothing is seen at the namespace.
	drainPatience = 10 * time.Minute
	// afterwards is how long a system's last requests may come in once the
	// namespace is gone: an answer, a look whether it is really gone.
	afterwards = time.Second
)

// Drain deletes the namespaces and measures what a running system makes of it,
// until the last is gone. The requests are those for every kind.
func Drain(ctx context.Context, cfg *rest.Config, metrics func(context.Context) (string, error), b *Batch) (Result, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return Result{}, fmt.Errorf("drain: %w", err)
	}
	in := client.Resource(namespaceKind.GVR())
	f := &follow{in: in, pending: map[types.UID]bool{}, patience: drainPatience}
	for _, ns := range b.Namespaces {
		f.pending[ns.UID] = false
	}
	before, err := countRequests(ctx, metrics, others)
	if err != nil {
		return Result{}, err
	}
	if err := f.begin(ctx); err != nil {
		return Result{}, fmt.Errorf("drain: %w", err)
	}
	result, err := f.measure(ctx, func(ctx context.Context) error {
		return Each(ctx, len(b.Namespaces), func(ctx context.Context, i int) error {
			return in.Delete(ctx, b.Namespaces[i].Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &b.Namespaces[i].UID},
			})
		})
	})
	if err != nil {
		return result, err
	}
	if err := Pause(ctx, afterwards); err != nil {
		return result, err
	}
	after, err := countRequests(ctx, metrics, others)
	if err != nil {
		return result, err
	}
	result.Dependents = len(b.Content)
	result.Requests = after.minus(before)
	result.Requests["DELETE"] -= float64(len(b.Namespaces)) // sent here
	result.Requests["LIST"]--                               // follow's
	return result, nil
}

// FloorOfContent deletes by plain requests what is in the namespaces, while they
// are ordinary ones, and measures until the last request is answered. No one
// watches: that makes the floor faster, if anything.
func FloorOfContent(ctx context.Context, cfg *rest.Config, b *Batch) (Result, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return Result{}, fmt.Errorf("run the floor: %w", err)
	}
	started := time.Now()
	err = Each(ctx, len(b.Content), func(ctx context.Context, i int) error {
		c := b.Content[i]
		return Remove(ctx, client.Resource(c.Kind.GVR()).Namespace(c.Namespace), c.Object)
	})
	if err != nil {
		return Result{}, fmt.Errorf("run the floor: %w", err)
	}
	return Result{Dependents: len(b.Content), Took: time.Since(started)}, nil
}

// Raze removes namespaces that are empty, with no system running.
func Raze(ctx context.Context, cfg *rest.Config, b *Batch) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("raze namespaces: %w", err)
	}
	namespaces := client.CoreV1().Namespaces()
	err = Each(ctx, len(b.Namespaces), func(ctx context.Context, i int) error {
		meta := metav1.ObjectMeta{Name: b.Namespaces[i].Name, UID: b.Namespaces[i].UID}
		err := namespaces.Delete(ctx, meta.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &meta.UID}})
		if err != nil {
			return err
		}
		_, err = namespaces.Finalize(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("raze namespaces: %w", err)
	}
	return nil
}

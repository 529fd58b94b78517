package finalizers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/metaonly"
)

// page and fullPage are how many objects are read at once: metadata, and whole objects. An object
// may have more than a megabyte, and takes several times as much when it is decoded.
const page, fullPage = 500, 20

// Lister reads stored objects as policies judge them.
type Lister struct {
	full         dynamic.Interface
	metadataOnly metadata.Interface
	send         Sender // nil: requests are made at once
}

// Sender makes a request about a kind when it is its turn. It returns the request's error, or why
// it was not made. The verb is get or list; Sender is called for each page of a list.
type Sender func(ctx context.Context, verb string, kind schema.GroupResource, request func(context.Context) error) error

// NewLister returns a Lister, whose requests are bounded by config's rate limits.
func NewLister(config *rest.Config) (*Lister, error) {
	full, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for lists: %w", err)
	}
	metadataOnly, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for lists: %w", err)
	}
	return &Lister{full: full, metadataOnly: metadataOnly}, nil
}

// Through returns a Lister that makes its requests through send.
func (l *Lister) Through(send Sender) *Lister {
	return &Lister{full: l.full, metadataOnly: l.metadataOnly, send: send}
}

// asked makes a request through l.send, and returns its answer.
func asked[T any](
	ctx context.Context, l *Lister, verb string, gvr schema.GroupVersionResource,
	request func(context.Context) (T, error),
) (answer T, err error) {
	if l.send == nil {
		return request(ctx)
	}
	err = l.send(ctx, verb, gvr.GroupResource(), func(ctx context.Context) (err error) {
		answer, err = request(ctx)
		return err
	})
	return answer, err
}

// Each calls f with every object of a resource in a namespace, or in all if namespace is empty. f
// gets the whole object, or with full false only its metadata. Each ends early with f's error. A
// list that expires on the way goes on behind the objects that f has seen, with objects as they are
// by then; if the API does not offer that, Each ends with an error.
func (l *Lister) Each(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, full bool,
	f func(object map[string]any, m *metav1.ObjectMeta) error,
) error {
	return l.EachOf(ctx, gvr, namespace, "", full, f)
}

// EachOf is Each for the objects that a label selector selects. It reads the next page while f uses
// the one before, which may take some time, and holds no more than these two.
func (l *Lister) EachOf(ctx context.Context, gvr schema.GroupVersionResource, namespace, selector string, full bool,
	f func(object map[string]any, m *metav1.ObjectMeta) error) error {
	options := metav1.ListOptions{Limit: page, LabelSelector: selector}
	if full {
		options.Limit = fullPage
	}
	type answer struct {
		items items
		next  string
		err   error
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := func(o metav1.ListOptions) <-chan answer {
		answered := make(chan answer, 1)
		reading.Go(func() {
			items, next, err := l.page(ctx, gvr, namespace, full, o)
			answered <- answer{items, next, err}
		})
		return answered
	}
	pages := metaonly.Pages{}
	for coming := begin(options); ; {
		got := <-coming
		if next := goesOn(got.err); next != "" && options.Continue != "" {
			options.Continue = next
			coming, pages = begin(options), metaonly.Pages{}
			continue
		}
		if first := got.items.first(); first != nil {
			pages.Saw(first)
		}
		if err := cmp.Or(got.err, pages.Next(got.next)); err != nil {
			return fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		if got.next != "" {
			options.Continue = got.next
			coming = begin(options)
		}
		_, err := got.items.each(func(object map[string]any, m *metav1.ObjectMeta) (bool, error) {
			return false, f(object, m)
		})
		if err != nil || got.next == "" {
			return err
		}
	}
}

// Some is Each for at most so many pages of so many objects that selector selects; nil selects all.
// It returns false if there are more. f ends it by returning enough.
func (l *Lister) Some(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, full bool,
	selector *metav1.LabelSelector, size int64, pages int,
	f func(object map[string]any, m *metav1.ObjectMeta) (enough bool, err error),
) (all bool, err error) {
	options := metav1.ListOptions{Limit: size}
	if selector != nil {
		options.LabelSelector = metav1.FormatLabelSelector(selector)
	}
	for range pages {
		items, next, err := l.page(ctx, gvr, namespace, full, options)
		if err != nil {
			return false, fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		if enough, err := items.each(f); enough || err != nil {
			return true, err
		}
		if next == "" {
			return true, nil
		}
		options.Continue = next
	}
	return false, nil
}

// goesOn returns the token with which an expired list goes on behind the last object that it
// returned; "" if the API server does not offer one.
func goesOn(err error) string {
	status := apierrors.APIStatus(nil)
	if apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

// items are the objects of a page.
type items struct {
	whole    []unstructured.Unstructured
	metadata []metav1.PartialObjectMetadata
}

// first returns the metadata of the first object; nil if there is none.
func (it items) first() *metav1.ObjectMeta {
	switch {
	case len(it.whole) > 0:
		return metaOf(&it.whole[0])
	case len(it.metadata) > 0:
		return &it.metadata[0].ObjectMeta
	}
	return nil
}

// each calls f with each object until f has seen enough. Metadata becomes an object only when its
// turn comes: managedFields, of which there may be a megabyte, take many times as much as one.
func (it items) each(
	f func(object map[string]any, m *metav1.ObjectMeta) (enough bool, err error),
) (enough bool, err error) {
	for i := range it.whole {
		if enough, err = f(it.whole[i].Object, metaOf(&it.whole[i])); enough || err != nil {
			return enough, err
		}
	}
	for i := range it.metadata {
		m := &it.metadata[i]
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
		if err != nil {
			return false, fmt.Errorf("decode: %w", err)
		}
		if enough, err := f(object, &m.ObjectMeta); enough || err != nil {
			return enough, err
		}
	}
	return false, nil
}

func (l *Lister) page(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, full bool, o metav1.ListOptions,
) (items, string, error) {
	if full {
		list, err := asked(ctx, l, "list", gvr, func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			return l.full.Resource(gvr).Namespace(namespace).List(ctx, o)
		})
		if err != nil {
			return items{}, "", err
		}
		return items{whole: list.Items}, list.GetContinue(), nil
	}
	list, err := asked(ctx, l, "list", gvr, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
		return l.metadataOnly.Resource(gvr).Namespace(namespace).List(ctx, o)
	})
	if err != nil {
		return items{}, "", err
	}
	return items{metadata: list.Items}, list.Continue, nil
}

// Get reads one object: the whole of it, or with full false only its metadata.
func (l *Lister) Get(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, full bool,
) (map[string]any, *metav1.ObjectMeta, error) {
	if full {
		u, err := asked(ctx, l, "get", gvr, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return l.full.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		})
		if err != nil {
			return nil, nil, err
		}
		return u.Object, metaOf(u), nil
	}
	m, err := asked(ctx, l, "get", gvr, func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return l.metadataOnly.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	return object, &m.ObjectMeta, err
}

func metaOf(u *unstructured.Unstructured) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Finalizers: u.GetFinalizers(), Annotations: u.GetAnnotations(), Labels: u.GetLabels(),
		DeletionTimestamp: u.GetDeletionTimestamp(),
	}
}

// MetaOf returns the metadata of an object in a review, as far as adding the finalizer needs it.
func MetaOf(object map[string]any) *metav1.ObjectMeta {
	return metaOf(&unstructured.Unstructured{Object: object})
}

package finalizers

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/weir-dev/weir/controller/metaonly"
	"github.com/weir-dev/weir/policies"
)

// page and fullPage are how many objects are read at once: metadata, and whole objects. An object
// may have more than a megabyte, and takes several times as much when it is decoded.
const page, fullPage = 500, 20

// Lister reads stored objects as policies judge them.
type Lister struct {
	full         dynamic.Interface
	metadataOnly metadata.Interface
	send         Sender
}

// Sender makes a request about a kind when it is its turn. It returns the request's error, or why
// it was not made. The verb is get or list; Sender is called for each page of a list.
type Sender func(ctx context.Context, verb string, kind schema.GroupResource, request func(context.Context) error) error

// NewLister returns a Lister that makes its requests at once, bounded by config's rate limits.
func NewLister(config *rest.Config) (*Lister, error) {
	full, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for lists: %w", err)
	}
	metadataOnly, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for lists: %w", err)
	}
	atOnce := func(ctx context.Context, _ string, _ schema.GroupResource, request func(context.Context) error) error {
		return request(ctx)
	}
	return &Lister{full: full, metadataOnly: metadataOnly, send: atOnce}, nil
}

// Through returns a Lister that makes its requests through send.
func (l *Lister) Through(send Sender) *Lister {
	return &Lister{full: l.full, metadataOnly: l.metadataOnly, send: send}
}

// Each calls f with every object of a resource that a label selector selects in a namespace, or in
// all if namespace is empty. f gets the whole object, or with full false only its metadata. Each
// ends early with f's error. A list that expires on the way goes on behind the objects that f has
// seen, with objects as they are by then; if the API does not offer that, Each ends with an error.
// It reads the next page while f uses the one before, which may take some time, and holds no more
// than these two.
func (l *Lister) Each(ctx context.Context, gvr schema.GroupVersionResource, namespace, selector string, full bool,
	f func(object map[string]any, m *metav1.ObjectMeta) error) error {
	options := metav1.ListOptions{Limit: page, LabelSelector: selector}
	if full {
		options.Limit = fullPage
	}
	var pages metaonly.Pages
	p := pager.ListPager{PageFn: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := l.page(ctx, gvr, namespace, full, o)
		if next := goesOn(err); next != "" && o.Continue != "" {
			o.Continue, pages = next, metaonly.Pages{}
			list, err = l.page(ctx, gvr, namespace, full, o)
		}
		if err == nil {
			err = endless(&pages, list)
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		return list, nil
	}}
	return p.EachListItem(ctx, options, func(o runtime.Object) error {
		object, m, err := read(o)
		if err != nil {
			return err
		}
		return f(object, m)
	})
}

// Some is Each for the objects that a Lookup selects, within its bounds. It returns false if there
// are more. f ends it by returning enough.
func (l *Lister) Some(ctx context.Context, of *policies.Lookup,
	f func(object map[string]any, m *metav1.ObjectMeta) (enough bool, err error)) (all bool, err error) {
	most := policies.BoundsOf(of.Full)
	options := metav1.ListOptions{Limit: most.Page}
	if of.Selector != nil {
		options.LabelSelector = metav1.FormatLabelSelector(of.Selector)
	}
	for range most.Pages {
		list, err := l.page(ctx, of.Resource, of.Namespace, of.Full, options)
		if err != nil {
			return false, fmt.Errorf("list %s: %w", of.Resource.GroupResource(), err)
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			object, m, err := read(o)
			if err != nil {
				return err
			}
			if enough, err := f(object, m); err != nil || !enough {
				return err
			}
			return errEnough
		})
		switch options.Continue = list.GetContinue(); {
		case errors.Is(err, errEnough):
			return true, nil
		case err != nil || options.Continue == "":
			return err == nil, err
		}
	}
	return false, nil
}

// errEnough ends a page.
var errEnough = errors.New("enough has been seen")

// goesOn returns the token with which an expired list goes on behind the last object that it
// returned; "" if the API server does not offer one.
func goesOn(err error) string {
	status := apierrors.APIStatus(nil)
	if apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

// list is a page.
type list interface {
	runtime.Object
	GetContinue() string
}

func (l *Lister) page(ctx context.Context, gvr schema.GroupVersionResource, namespace string, full bool,
	o metav1.ListOptions) (got list, err error) {
	err = l.send(ctx, "list", gvr.GroupResource(), func(ctx context.Context) (err error) {
		if full {
			got, err = l.full.Resource(gvr).Namespace(namespace).List(ctx, o)
		} else {
			got, err = l.metadataOnly.Resource(gvr).Namespace(namespace).List(ctx, o)
		}
		return err
	})
	return got, err
}

// endless returns an error if the pages of a list have no end.
func endless(pages *metaonly.Pages, last list) error {
	switch l := last.(type) {
	case *unstructured.UnstructuredList:
		if len(l.Items) > 0 {
			pages.Saw(MetaOf(l.Items[0].Object))
		}
	case *metav1.PartialObjectMetadataList:
		if len(l.Items) > 0 {
			pages.Saw(&l.Items[0].ObjectMeta)
		}
	}
	return pages.Next(last.GetContinue())
}

// Get reads one object: the whole of it, or with full false only its metadata.
func (l *Lister) Get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string,
	full bool) (map[string]any, *metav1.ObjectMeta, error) {
	var o runtime.Object
	err := l.send(ctx, "get", gvr.GroupResource(), func(ctx context.Context) (err error) {
		if full {
			o, err = l.full.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		} else {
			o, err = l.metadataOnly.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return read(o)
}

// read returns an object as policies judge it. Metadata becomes an object only when its turn comes:
// managedFields, of which there may be a megabyte, take many times as much as one.
func read(o runtime.Object) (map[string]any, *metav1.ObjectMeta, error) {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return o.Object, MetaOf(o.Object), nil
	case *metav1.PartialObjectMetadata:
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, nil, fmt.Errorf("decode: %w", err)
		}
		return object, &o.ObjectMeta, nil
	}
	return nil, nil, fmt.Errorf("decode: unexpected %T", o)
}

// MetaOf returns the metadata of an object, as far as adding the finalizer needs it.
func MetaOf(object map[string]any) *metav1.ObjectMeta {
	u := unstructured.Unstructured{Object: object}
	return &metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Finalizers: u.GetFinalizers(), Annotations: u.GetAnnotations(), Labels: u.GetLabels(),
		DeletionTimestamp: u.GetDeletionTimestamp(),
	}
}

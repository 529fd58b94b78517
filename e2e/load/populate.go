package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Clients is how many requests the driver keeps in flight.
const Clients = 64

// Each calls f for 0..n-1 from Clients goroutines and returns the first error, after which no
// further call begins.
func Each(ctx context.Context, n int, f func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(Clients, n) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// An Object is what a later request about it needs to name.
type Object struct {
	Name            string
	UID             types.UID
	ResourceVersion string
}

// A Population is what Populate made: a tree in a namespace of its own.
type Population struct {
	Layout     Layout
	Namespace  string
	Owner      Object
	Dependents []Object
	// Ended is told of each dependent that is seen to be done, one at a time; nil: nobody is.
	Ended func(time.Time)
}

// Populate makes a population as fast as the API server lets it. Each dependent blocks its owner's
// deletion, so that a foreground deletion waits for it.
func Populate(ctx context.Context, cfg *rest.Config, layout Layout) (*Population, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	if layout.Kind == Widget {
		crd := Definition(Widget, apiextensionsv1.NamespaceScoped, Widget.Version)
		if err := Define(ctx, cfg, crd); err != nil {
			return nil, err
		}
	}
	namespace, err := NewNamespace(ctx, client)
	if err != nil {
		return nil, err
	}
	p := &Population{Layout: layout, Namespace: namespace.Name}
	if p.Owner, err = Create(ctx, client, layout.Kind, p.Namespace, "owner", layout.OwnerLabels); err != nil {
		return nil, err
	}
	above := []Object{p.Owner}
	for level, per := range layout.Levels {
		below := make([]Object, len(above)*per)
		err := Each(ctx, len(below), func(ctx context.Context, i int) (err error) {
			owners := []Object{above[i/per]}
			if layout.Loose {
				owners = nil
			}
			if name := fmt.Sprintf("never-%d-%d", level, i); layout.CoOwners {
				owners = append(owners, Object{Name: name, UID: uuid.NewUUID()})
			}
			name := fmt.Sprintf("d%d-%d", level, i)
			below[i], err = Create(ctx, client, layout.Kind, p.Namespace, name, layout.Labels, owners...)
			return err
		})
		if err != nil {
			return nil, err
		}
		p.Dependents = append(p.Dependents, below...)
		above = below
	}
	return p, nil
}

// NewNamespace makes a namespace with a name of its own.
func NewNamespace(ctx context.Context, client dynamic.Interface) (Object, error) {
	ns := &unstructured.Unstructured{}
	ns.SetGenerateName("bench-")
	return Made(ctx, client.Resource(Namespace.GVR()), Namespace, ns)
}

// Create makes an object, whose owners are of its kind.
func Create(ctx context.Context, client dynamic.Interface, kind Kind, namespace, name string, labels map[string]string,
	owners ...Object) (Object, error) {
	o := &unstructured.Unstructured{}
	o.SetName(name)
	o.SetLabels(labels)
	var references []metav1.OwnerReference
	for _, owner := range owners {
		references = append(references, Reference(kind, owner))
	}
	o.SetOwnerReferences(references)
	return Made(ctx, client.Resource(kind.GVR()).Namespace(namespace), kind, o)
}

// Reference is one to an owner, whose deletion it blocks.
func Reference(kind Kind, o Object) metav1.OwnerReference {
	apiVersion, k := kind.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: k, Name: o.Name, UID: o.UID, BlockOwnerDeletion: new(true)}
}

// Made makes an object as it is given.
func Made(
	ctx context.Context, in dynamic.ResourceInterface, kind Kind, o *unstructured.Unstructured,
) (Object, error) {
	o.SetGroupVersionKind(kind.GroupVersionKind)
	answer, err := in.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return Object{}, fmt.Errorf("create %s %s: %w", kind.Kind, o.GetName(), err)
	}
	return Object{answer.GetName(), answer.GetUID(), answer.GetResourceVersion()}, nil
}

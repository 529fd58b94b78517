package load

import (
	"context"
	"fmt"
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

// Populate makes a population as fast as the API server lets it. Each dependent
// blocks its owner's deletion, so that a foreground deletion waits for it.
func Populate(ctx context.Context, cfg *rest.Config, layout Layout) (*Population, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("populate %s: %w", layout.Name, err)
	}
	if layout.Kind == Widget {
		crd := Definition(Widget, apiextensionsv1.NamespaceScoped, Widget.Version)
		if err := Define(ctx, cfg, crd); err != nil {
			return nil, fmt.Errorf("populate %s: %w", layout.Name, err)
		}
	}
	namespace, err := newNamespace(ctx, client, layout.Name)
	if err != nil {
		return nil, fmt.Errorf("populate %s: %w", layout.Name, err)
	}
	p := &Population{Layout: layout, Namespace: namespace.Name}
	in := client.Resource(layout.Kind.GVR()).Namespace(p.Namespace)
	if p.Owner, err = create(ctx, in, layout.Kind, "owner", layout.OwnerLabels, nil); err != nil {
		return nil, fmt.Errorf("populate %s: %w", layout.Name, err)
	}
	above := []Object{p.Owner}
	for level, per := range layout.Levels {
		below := make([]Object, len(above)*per)
		err := Each(ctx, len(below), func(ctx context.Context, i int) error {
			var err error
			owners := []Object{above[i/per]}
			if layout.Loose {
				owners = nil
			}
			if name := fmt.Sprintf("never-%d-%d", level, i); layout.CoOwners {
				owners = append(owners, Object{Name: name, UID: uuid.NewUUID()})
			}
			below[i], err = create(ctx, in, layout.Kind, fmt.Sprintf("d%d-%d", level, i), layout.Labels, layout.Finalizers, owners...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("populate %s: %w", layout.Name, err)
		}
		p.Dependents = append(p.Dependents, below...)
		above = below
	}
	return p, nil
}

// More makes n further objects of a population's kind in its namespace, without an owner, as cfg's
// user. They are none of its Dependents.
func More(ctx context.Context, cfg *rest.Config, p *Population, n int, labels map[string]string) error {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make more of %s: %w", p.Layout.Name, err)
	}
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	err = Each(ctx, n, func(ctx context.Context, i int) error {
		_, err := create(ctx, in, p.Layout.Kind, fmt.Sprintf("more-%d", i), labels, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("make more of %s: %w", p.Layout.Name, err)
	}
	return nil
}

func newNamespace(ctx context.Context, client dynamic.Interface, prefix string) (Object, error) {
	ns := &unstructured.Unstructured{}
	ns.SetGenerateName("bench-" + prefix + "-")
	return made(ctx, client.Resource(namespaceKind.GVR()), namespaceKind, ns)
}

// create makes an object, whose owners are of its kind.
func create(ctx context.Context, in dynamic.ResourceInterface, kind Kind, name string, labels map[string]string, finalizers []string, owners ...Object) (Object, error) {
	o := &unstructured.Unstructured{}
	o.SetName(name)
	o.SetLabels(labels)
	o.SetFinalizers(finalizers)
	var references []metav1.OwnerReference
	for _, owner := range owners {
		references = append(references, reference(kind, owner))
	}
	o.SetOwnerReferences(references)
	return made(ctx, in, kind, o)
}

func reference(kind Kind, o Object) metav1.OwnerReference {
	apiVersion, k := kind.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: k, Name: o.Name, UID: o.UID, BlockOwnerDeletion: new(true)}
}

func made(ctx context.Context, in dynamic.ResourceInterface, kind Kind, o *unstructured.Unstructured) (Object, error) {
	o.SetGroupVersionKind(kind.GroupVersionKind)
	answer, err := in.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return Object{}, fmt.Errorf("create %s %s: %w", kind.Kind, o.GetName(), err)
	}
	return Object{answer.GetName(), answer.GetUID(), answer.GetResourceVersion()}, nil
}

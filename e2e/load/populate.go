package load

import (
	"context"
	"fmt"

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
}

// Populate makes a population as fast as the API server lets it. Each dependent
// blocks its owner's deletion, so that a foreground deletion waits for it.
func Populate(ctx context.Context, cfg *rest.Config, layout Layout) (*Population, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("populate %s: %w", layout.Name, err)
	}
	if layout.Kind == Widget {
		if err := Define(ctx, cfg, Widget); err != nil {
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
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"generateName": "bench-" + prefix + "-"},
	}}
	made, err := client.Resource(namespaceKind.GVR()).Create(ctx, ns, metav1.CreateOptions{})
	if err != nil {
		return Object{}, fmt.Errorf("create namespace: %w", err)
	}
	return Object{made.GetName(), made.GetUID(), made.GetResourceVersion()}, nil
}

func create(ctx context.Context, in dynamic.ResourceInterface, kind Kind, name string, labels map[string]string, finalizers []string, owners ...Object) (Object, error) {
	apiVersion, k := kind.ToAPIVersionAndKind()
	var references []any
	for _, owner := range owners {
		references = append(references, map[string]any{
			"apiVersion": apiVersion, "kind": k, "name": owner.Name, "uid": string(owner.UID),
			"blockOwnerDeletion": true,
		})
	}
	meta := map[string]any{"name": name}
	if len(labels) > 0 {
		with := map[string]any{}
		for k, v := range labels {
			with[k] = v
		}
		meta["labels"] = with
	}
	if len(finalizers) > 0 {
		var held []any
		for _, f := range finalizers {
			held = append(held, f)
		}
		meta["finalizers"] = held
	}
	if len(references) > 0 {
		meta["ownerReferences"] = references
	}
	made, err := in.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": k, "metadata": meta,
	}}, metav1.CreateOptions{})
	if err != nil {
		return Object{}, fmt.Errorf("create %s: %w", name, err)
	}
	return Object{name, made.GetUID(), made.GetResourceVersion()}, nil
}

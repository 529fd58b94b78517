package main

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/e2e/load"
)

var heldCollections = schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "heldcollections"}

// uninstalled: an operator is uninstalled together with its definition. What its 600 widgets own is
// held until a person decides.
func uninstalled(ctx context.Context, c *cluster) error {
	const n = 600
	if err := load.Define(ctx, c.cfg, load.Definition(widget, apiextensionsv1.NamespaceScoped, "v1")); err != nil {
		return err
	}
	if err := c.manyWidgets(ctx, n); err != nil {
		return err
	}
	fmt.Printf("  there: %d widgets ─ a configmap each\n\n$ kubectl delete crd %s\n", n, widgetsCRD)
	if err := c.in(crds).Delete(ctx, widgetsCRD, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete the definition: %w", err)
	}
	held, left, err := c.held(ctx)
	if err != nil {
		return err
	}
	if left == 0 {
		return errors.New("nothing is left to decide about")
	}
	field := func(name string) string {
		v, _, _ := unstructured.NestedFieldNoCopy(held.Object, "status", name)
		return fmt.Sprint(v)
	}
	fmt.Printf("  %d of %d configmaps are there: this was not asked for, and is much.\n\n$ kubectl get held\n", left, n)
	fmt.Printf("  NAME                     OBJECTS   BECAUSE           DIGEST\n  %s   %-9s %s   %s\n", widgetsCRD, field("objects"), field("conclusions"), field("digest"))
	patch := fmt.Sprintf(`{"spec":{"decision":"Proceed","digest":"%s"}}`, field("digest"))
	fmt.Printf("\nA person decides:\n$ kubectl patch held %s --type merge -p '%s'\n", widgetsCRD, patch)
	if _, err := c.in(heldCollections).Patch(ctx, widgetsCRD, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	if err := until(ctx, "the configmaps are gone", func(ctx context.Context) (bool, error) {
		left, err := c.countOwned(ctx)
		return left == 0, err
	}); err != nil {
		return err
	}
	fmt.Println("  gone: the configmaps")
	return nil
}

const widgetsCRD = "widgets.demo.weir.dev"

var widget = load.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "demo.weir.dev", Version: "v1", Kind: "Widget"}, Resource: "widgets"}

// manyWidgets makes widgets that own a ConfigMap each.
func (c *cluster) manyWidgets(ctx context.Context, n int) error {
	return load.Each(ctx, n, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("tenant-%d", i)
		w, err := load.Create(ctx, c.client, widget, namespace, name, nil)
		if err != nil {
			return err
		}
		_, err = c.create(ctx, configMaps, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: %[1]s
  namespace: demo
  labels: {of: widget}
  ownerReferences: [{apiVersion: demo.weir.dev/v1, kind: Widget, name: %[1]s, uid: %[2]s}]`, name, w.UID))
		return err
	})
}

func (c *cluster) countOwned(ctx context.Context) (int, error) {
	list, err := c.in(configMaps).List(ctx, metav1.ListOptions{LabelSelector: "of=widget"})
	if err != nil {
		return 0, fmt.Errorf("list configmaps: %w", err)
	}
	return len(list.Items), nil
}

// held waits until all configmaps that are left are held, and returns what says so, and how many
// they are.
func (c *cluster) held(ctx context.Context) (held *unstructured.Unstructured, left int, err error) {
	err = until(ctx, "the configmaps are held", func(ctx context.Context) (bool, error) {
		if left, err = c.countOwned(ctx); err != nil {
			return false, err
		}
		list, err := c.in(heldCollections).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		held = &list.Items[0]
		n, _, err := unstructured.NestedInt64(held.Object, "status", "held")
		return int(n) == left, err
	})
	return held, left, err
}

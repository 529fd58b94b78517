package load

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Floor does by plain requests what a system has to send at the least: one per
// object, each with the preconditions that make it safe. The driver knows every
// object beforehand and decides nothing, so no collector can be faster by much.
func Floor(ctx context.Context, cfg *rest.Config, p *Population, policy metav1.DeletionPropagation) error {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("run the floor: %w", err)
	}
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	one := Remove
	if policy == metav1.DeletePropagationOrphan {
		one = release
	}
	if err := Remove(ctx, in, p.Owner); err != nil {
		return fmt.Errorf("run the floor: %w", err)
	}
	// From the last to the first: in a tree, dependents before their owner,
	// as a foreground deletion has it.
	n := len(p.Dependents)
	err = Each(ctx, n, func(ctx context.Context, i int) error { return one(ctx, in, p.Dependents[n-1-i]) })
	if err != nil {
		return fmt.Errorf("run the floor: %w", err)
	}
	return nil
}

// Remove deletes an object as it was when it was made.
func Remove(ctx context.Context, in metadata.ResourceInterface, o Object) error {
	policy := metav1.DeletePropagationBackground
	return in.Delete(ctx, o.Name, metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
	})
}

func release(ctx context.Context, in metadata.ResourceInterface, o Object) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.UID, "resourceVersion": o.ResourceVersion, "ownerReferences": nil,
	}})
	if err != nil {
		return err
	}
	_, err = in.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Clean removes what a run left behind, with no system running.
func Clean(ctx context.Context, cfg *rest.Config, p *Population) error {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("clean %s: %w", p.Namespace, err)
	}
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	left, err := in.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("clean %s: %w", p.Namespace, err)
	}
	policy := metav1.DeletePropagationBackground
	err = Each(ctx, len(left.Items), func(ctx context.Context, i int) error {
		o := &left.Items[i]
		err := in.Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &policy})
		if err == nil && len(o.Finalizers) > 0 {
			_, err = in.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("clean %s: %w", p.Namespace, err)
	}
	return nil
}

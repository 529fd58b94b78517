package request

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Delete sends a DELETE with the uid of ref as a precondition, and its resourceVersion if ref has
// one.
func (r *Client) Delete(ctx context.Context, ref graph.Ref, propagation metav1.DeletionPropagation) error {
	err := r.delete(ctx, ref, propagation, nil)
	if !IsBusy(err) { // a busy error was not sent
		r.metrics.deleted(ref.Kind, OutcomeOf(err))
	}
	return err
}

// TryDelete is Delete as a dry run.
func (r *Client) TryDelete(ctx context.Context, ref graph.Ref, propagation metav1.DeletionPropagation) error {
	return r.delete(ctx, ref, propagation, []string{metav1.DryRunAll})
}

func (r *Client) delete(
	ctx context.Context, ref graph.Ref, propagation metav1.DeletionPropagation, dryRun []string,
) error {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return err
	}
	preconditions := &metav1.Preconditions{UID: &ref.UID}
	if ref.ResourceVersion != "" {
		preconditions.ResourceVersion = &ref.ResourceVersion
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		PropagationPolicy: &propagation, Preconditions: preconditions, DryRun: dryRun,
	})
	if err != nil {
		return fmt.Errorf("encode delete options: %w", err)
	}
	req := object(r.client.Delete(), gv, ref.Kind.Resource, ref.Namespace, ref.Name).
		SetHeader("Content-Type", "application/json").Body(body)
	_, err = r.do(ctx, "delete", ref.Kind, req)
	return err
}

// Patch sends the metadata that an action wants, with resourceVersion as a precondition. It returns
// errNoEffect if the answer does not show the change. It is a JSON merge patch, the one type that
// built-in and custom resources both accept (RB 3.19).
func (r *Client) Patch(ctx context.Context, a graph.Action, resourceVersion string) error {
	gv, err := r.versionOf(a.Object.Kind)
	if err != nil {
		return err
	}
	change := map[string]any{"uid": a.Object.UID, "resourceVersion": resourceVersion}
	if a.Verb == graph.Unfinalize {
		change["finalizers"] = orNull(a.Finalizers)
	} else {
		change["ownerReferences"] = orNull(a.Owners)
	}
	// Without the right to grant what a role grants, only its references may be changed.
	if a.Kept != "" && a.Object.Kind.Group != rbacv1.GroupName {
		change["annotations"] = map[string]string{v1beta1.KeptAnnotation: words.Cut(a.Why, mostKept)}
	}
	body, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	o := a.Object
	req := object(r.client.Patch(types.MergePatchType), gv, o.Kind.Resource, o.Namespace, o.Name).Body(body)
	after, err := r.doForMetadata(ctx, "patch", a.Object.Kind, req)
	if err == nil && !tookEffect(a, after) {
		return errNoEffect
	}
	return err
}

// mostKept bounds, in bytes, the annotation that says why an object is kept.
const mostKept = 1024

// tookEffect reports whether the answer to a patch shows what the patch wanted. The resourceVersion
// would not show it: it stays when the last finalizer, and the object with it, goes.
func tookEffect(a graph.Action, after *metav1.PartialObjectMetadata) bool {
	if a.Verb == graph.Unfinalize {
		return !slices.Contains(after.Finalizers, a.Finalizer)
	}
	missing := func(wanted metav1.OwnerReference) bool {
		return !slices.ContainsFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.UID == wanted.UID &&
				ptr.Deref(r.BlockOwnerDeletion, false) == ptr.Deref(wanted.BlockOwnerDeletion, false)
		})
	}
	return len(after.OwnerReferences) == len(a.Owners) && !slices.ContainsFunc(a.Owners, missing)
}

// orNull returns nil for an empty list, so that a merge patch removes the last element.
func orNull[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

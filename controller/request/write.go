package request

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Delete sends a DELETE that only the object with the uid of ref answers to, and only at the
// resourceVersion of ref if it has one.
func (r *Client) Delete(ctx context.Context, ref graph.Ref, propagation metav1.DeletionPropagation) error {
	err := r.delete(ctx, ref, propagation, nil)
	if !IsBusy(err) { // otherwise it was not sent
		r.metrics.deleted(ref.Kind, OutcomeOf(err))
	}
	return err
}

// TryDelete is Delete as a dry run.
func (r *Client) TryDelete(ctx context.Context, ref graph.Ref, propagation metav1.DeletionPropagation) error {
	return r.delete(ctx, ref, propagation, []string{metav1.DryRunAll})
}

func (r *Client) delete(ctx context.Context, ref graph.Ref, propagation metav1.DeletionPropagation, dryRun []string) error {
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

// Patch sends the metadata that an action wants, for the given resourceVersion; errNoEffect if
// nothing has come of it. A JSON merge patch: the one kind that built-in and custom resources both
// accept, so there is no 415 to learn from (RB 3.19).
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
	if a.Kept != "" && a.Object.Kind.Group != rbacv1.GroupName { // who may not grant what a role does may change its references, and nothing else
		change["annotations"] = map[string]string{v1beta1.KeptAnnotation: words.Cut(a.Why, mostKept)}
	}
	body, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	req := object(r.client.Patch(types.MergePatchType), gv, a.Object.Kind.Resource, a.Object.Namespace, a.Object.Name).Body(body)
	after, err := r.doForMetadata(ctx, "patch", a.Object.Kind, req)
	if err == nil && !tookEffect(a, after) {
		return errNoEffect
	}
	return err
}

// mostKept is how many bytes of why it is kept an object is told.
const mostKept = 1024

// tookEffect tells whether the API server's answer to a patch is as the patch wanted it. The
// resourceVersion would not tell: it stays when the last finalizer goes, and the object with it.
func tookEffect(a graph.Action, after *metav1.PartialObjectMetadata) bool {
	if a.Verb == graph.Unfinalize {
		return !slices.Contains(after.Finalizers, a.Finalizer)
	}
	return len(after.OwnerReferences) == len(a.Owners) && !slices.ContainsFunc(a.Owners, func(o metav1.OwnerReference) bool {
		return !slices.ContainsFunc(after.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.UID && blocks(r) == blocks(o) })
	})
}

func blocks(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}

// orNull is what makes a merge patch remove the last element of a list.
func orNull[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// DeleteCollection deletes what a namespace holds of a kind, unseen.
func (r *Client) DeleteCollection(ctx context.Context, kind schema.GroupResource, namespace string) error {
	gv, err := r.versionOf(kind)
	if err != nil {
		return err
	}
	_, err = r.do(ctx, "deletecollection", kind, collection(r.client.Delete(), gv, kind.Resource, namespace).
		Param("propagationPolicy", string(metav1.DeletePropagationBackground)))
	return err
}

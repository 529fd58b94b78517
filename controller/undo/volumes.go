package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/policies/v1beta1"
)

var claims = schema.GroupResource{Resource: "persistentvolumeclaims"}

// retaining yields objects, and if the policy asks for it retains the volumes of the claims among
// them. That is done before the tree is durable, and so before a claim may go.
func (r *Recorder) retaining(ctx context.Context, u Unrecorded, tree *v1beta1.DeletedTree,
	objects iter.Seq2[archive.Object, error]) iter.Seq2[archive.Object, error] {
	if !u.Archive.RetainsVolumes {
		return objects
	}
	return func(yield func(archive.Object, error) bool) {
		for o, err := range objects {
			if err == nil && o.Resource.GroupResource() == claims {
				err = r.retain(ctx, tree, o.Raw, u.Archive.Fail)
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// retain sets the reclaim policy of a claim's volume to Retain, so that its data outlives the
// claim. A volume that has that policy anyway is left alone.
func (r *Recorder) retain(ctx context.Context, tree *v1beta1.DeletedTree, raw []byte, must bool) error {
	var claim corev1.PersistentVolumeClaim
	if err := json.Unmarshal(raw, &claim); err != nil {
		return fmt.Errorf("decode a claim: %w", err)
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if claim.Spec.VolumeName == "" {
			return nil
		}
		v, err := r.Volumes.Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != claim.UID {
			return err
		}
		was := string(v.Spec.PersistentVolumeReclaimPolicy)
		if before := strings.Split(v.Annotations[v1beta1.RetainedAnnotation], "/"); len(before) == 3 {
			was = before[0] // set by an earlier attempt
		}
		if was == string(corev1.PersistentVolumeReclaimRetain) {
			return nil
		}
		return r.reclaim(ctx, v, string(corev1.PersistentVolumeReclaimRetain), was+"/"+tree.Name+"/"+string(claim.UID))
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	err = fmt.Errorf("have persistentvolumes %s retained: %w", claim.Spec.VolumeName, err)
	if must || ctx.Err() != nil {
		return err
	}
	missed(tree, "persistentvolumes "+claim.Spec.VolumeName, err.Error())
	return nil
}

// reclaim sets the reclaim policy of a volume, and its annotation; with nil it removes the
// annotation.
func (r *Recorder) reclaim(ctx context.Context, v *corev1.PersistentVolume, policy string, retained any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": v.UID, "resourceVersion": v.ResourceVersion,
			"annotations": map[string]any{v1beta1.RetainedAnnotation: retained}},
		"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}})
	if err == nil {
		_, err = r.Volumes.Patch(ctx, v.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return err
}

// giveBack restores the reclaim policy of volumes that were retained for trees that are gone, if
// they still refer to the recorded claim. Volumes are listed before the catalogue: a tree is in the
// catalogue before a volume is retained for it.
func (r *Recorder) giveBack(ctx context.Context) error {
	var retained []*corev1.PersistentVolume
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.Volumes.List(ctx, o)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		v := o.(*corev1.PersistentVolume)
		if v.Annotations[v1beta1.RetainedAnnotation] != "" {
			retained = append(retained, v.DeepCopy())
		}
		return nil
	})
	if err != nil || len(retained) == 0 {
		return err
	}
	trees, err := r.Archive.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range retained {
		said := strings.Split(v.Annotations[v1beta1.RetainedAnnotation], "/")
		if len(said) != 3 || v.Spec.ClaimRef == nil || string(v.Spec.ClaimRef.UID) != said[2] ||
			slices.ContainsFunc(trees, func(t v1beta1.DeletedTree) bool { return t.Name == said[1] }) {
			continue
		}
		r.Log.Info("setting the reclaim policy of a volume back: the deleted tree of its claim is no longer kept",
			"volume", v.Name, "policy", said[0], "tree", said[1])
		errs = append(errs, r.reclaim(ctx, v, said[0], nil))
	}
	return errors.Join(errs...)
}

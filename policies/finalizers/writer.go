// Package finalizers adds Weir's finalizer to stored objects and removes it, with one request for
// each object, and never changes another object than the one that was looked at.
//
// It has no locks. A list reads its next page on a goroutine of client-go's pager while a page is
// used.
package finalizers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Result is what became of the finalizer.
type Result string

// The results. Objects that are gone or terminate can no longer get a finalizer (RB 6.33).
const (
	Done    Result = "done"
	Already Result = "already" // it was as wanted
	Gone    Result = "gone"
	Changed Result = "changed" // by another client, and so it was left alone
	Failed  Result = "failed"
)

// Writer adds the finalizer to objects, and removes it.
type Writer struct {
	client metadata.Interface
	now    func() time.Time
}

// New returns a Writer, whose requests are bounded by config's rate limits. now returns the API
// server's time: the time at which a finalizer is added is written for other processes. If now is
// nil, nothing can be added.
func New(config *rest.Config, now func() time.Time) (*Writer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for finalizers: %w", err)
	}
	return &Writer{client: client, now: now}, nil
}

// Put adds finalizers to an object, and writes the time: a DELETE that is under way now does not
// honour them (RB 6.24). A time that cannot be right is written again. An object that has changed
// since it was in m, as which the caller has judged it, is left alone.
func (s *Writer) Put(ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta,
	add policies.Wanted) (Result, error) {
	now, missing := s.now(), add.Missing(m.Finalizers)
	text := m.Annotations[v1beta1.ArmedAtAnnotation]
	if _, ok := policies.Armed(text, now); len(missing) == 0 && (ok || text == "") {
		return Already, nil
	}
	if m.DeletionTimestamp != nil && len(missing) > 0 {
		return Gone, nil
	}
	change := map[string]any{"annotations": map[string]any{v1beta1.ArmedAtAnnotation: policies.ArmedAt(now)}}
	if len(missing) > 0 {
		change["finalizers"] = slices.Concat(m.Finalizers, missing)
	}
	return s.patch(ctx, gvr, m, change)
}

// Take removes what Put has added, unless the object has changed since it was in m. From a
// terminating object it removes only Weir's own finalizer: by then the other one says how the
// deletion goes. From a permission it removes only the finalizer: Put adds nothing there, and the
// API server may refuse a change that includes an annotation.
func (s *Writer) Take(ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta) (Result, error) {
	gr, change := gvr.GroupResource(), map[string]any{}
	if _, marked := m.Annotations[v1beta1.ArmedAtAnnotation]; marked && !policies.IsPermission(gr) {
		change["annotations"] = map[string]any{v1beta1.ArmedAtAnnotation: nil}
	}
	ours := policies.OwnFinalizers(gr, m.Finalizers)
	if m.DeletionTimestamp != nil && len(ours) > 0 {
		ours = ours[:1]
	}
	if len(ours) > 0 {
		change["finalizers"] = without(m.Finalizers, ours)
	}
	if len(change) == 0 {
		return Already, nil
	}
	return s.patch(ctx, gvr, m, change)
}

// without returns the value by which a merge patch leaves list without gone; nil if nothing is
// left.
func without(list, gone []string) any {
	left := slices.DeleteFunc(slices.Clone(list), func(f string) bool { return slices.Contains(gone, f) })
	if len(left) == 0 {
		return nil
	}
	return left
}

// patch changes the metadata of one object, as it is in m.
func (s *Writer) patch(ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta,
	change map[string]any) (Result, error) {
	if m.UID == "" { // a patch would hit whatever has the name
		return Failed, fmt.Errorf("change the finalizers of %s %s: which one is not known, it has no uid",
			gvr.GroupResource(), cache.MetaObjectToName(m))
	}
	change["uid"], change["resourceVersion"] = m.UID, m.ResourceVersion
	body, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return Failed, fmt.Errorf("encode a patch: %w", err)
	}
	_, err = s.client.Resource(gvr).Namespace(m.Namespace).Patch(ctx, m.Name, types.MergePatchType, body,
		metav1.PatchOptions{})
	switch {
	case err == nil:
		return Done, nil
	case isGone(err):
		return Gone, nil
	case apierrors.IsConflict(err):
		return Changed, nil
	}
	return Failed, fmt.Errorf("change the finalizers of %s %s: %w", gvr.GroupResource(), cache.MetaObjectToName(m), err)
}

// CannotCarry reports whether the finalizer cannot be added because the object is invalid, or too
// large with it. That stays so until a client edits it. The API server passes etcd's error for it
// on as it is.
func CannotCarry(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		err != nil && strings.Contains(err.Error(), "request is too large")
}

// isGone reports whether err is a 404 about an object, and not about a kind that is not served.
func isGone(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Name != ""
}

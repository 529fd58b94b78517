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

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// mostTries is how often an object is read and tried again that changes while it gets the
// finalizer.
const mostTries = 5

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
// honour them (RB 6.24). A time that cannot be right is written again.
func (s *Writer) Put(
	ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta, add policies.Wanted,
) (Result, error) {
	return s.change(ctx, gvr, m, s.adding(add), mostTries)
}

// PutUnchanged is Put for a caller that has judged the object as it is in m: if it has changed
// since, it is left alone.
func (s *Writer) PutUnchanged(
	ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta, add policies.Wanted,
) (Result, error) {
	return unchanged(s.change(ctx, gvr, m, s.adding(add), 1))
}

// adding returns the change that adds finalizers.
func (s *Writer) adding(add policies.Wanted) func(*metav1.ObjectMeta) map[string]any {
	return func(m *metav1.ObjectMeta) map[string]any {
		now, missing := s.now(), add.Missing(m.Finalizers)
		text := m.Annotations[v1beta1.ArmedAtAnnotation]
		if _, ok := policies.Armed(text, now); len(missing) == 0 && (ok || text == "") {
			return nil
		}
		change := map[string]any{"annotations": map[string]any{v1beta1.ArmedAtAnnotation: policies.ArmedAt(now)}}
		if len(missing) > 0 {
			change["finalizers"] = slices.Concat(m.Finalizers, missing)
		}
		return change
	}
}

// Take removes what Put has added. From a terminating object it removes only Weir's own finalizer:
// by then the other one says how the deletion goes.
func (s *Writer) Take(ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta) (Result, error) {
	return s.change(ctx, gvr, m, removing(gvr.GroupResource()), mostTries)
}

// TakeUnchanged is Take for a caller that has judged the object as it is in m: if it has changed
// since, or terminates by now, it is left alone.
func (s *Writer) TakeUnchanged(
	ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta,
) (Result, error) {
	return unchanged(s.change(ctx, gvr, m, removing(gvr.GroupResource()), 1))
}

func unchanged(result Result, err error) (Result, error) {
	if apierrors.IsConflict(err) {
		return Changed, nil
	}
	return result, err
}

// removing returns the change that removes what Put has added. From a permission it removes only
// the finalizer: Put adds nothing there, and the API server may refuse a change that includes an
// annotation.
func removing(gr schema.GroupResource) func(*metav1.ObjectMeta) map[string]any {
	return func(m *metav1.ObjectMeta) map[string]any {
		_, marked := m.Annotations[v1beta1.ArmedAtAnnotation]
		marked = marked && !policies.IsPermission(gr)
		ours := policies.OwnFinalizers(gr, m.Finalizers)
		if len(ours) == 0 && !marked {
			return nil
		}
		if m.DeletionTimestamp != nil && len(ours) > 0 {
			ours = ours[:1]
		}
		change := map[string]any{}
		if marked {
			change["annotations"] = map[string]any{v1beta1.ArmedAtAnnotation: nil}
		}
		if len(ours) > 0 {
			change["finalizers"] = without(m.Finalizers, ours)
		}
		return change
	}
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

// change patches the metadata of one object with what wanted returns. If the object changes
// meanwhile, it is read, and wanted is called again.
func (s *Writer) change(
	ctx context.Context, gvr schema.GroupVersionResource, m *metav1.ObjectMeta,
	wanted func(*metav1.ObjectMeta) map[string]any, tries int,
) (Result, error) {
	client := s.client.Resource(gvr).Namespace(m.Namespace)
	uid := m.UID
	if uid == "" { // a patch would hit whatever has the name
		return Failed, fmt.Errorf("change the finalizers of %s %s: which one is not known, it has no uid",
			gvr.GroupResource(), name(m))
	}
	for try := 1; ; try++ {
		change := wanted(m)
		if change == nil {
			return Already, nil
		}
		finalizers, _ := change["finalizers"].([]string)
		if m.DeletionTimestamp != nil && len(finalizers) > len(m.Finalizers) {
			return Gone, nil
		}
		change["uid"], change["resourceVersion"] = uid, m.ResourceVersion
		body, err := json.Marshal(map[string]any{"metadata": change})
		if err != nil {
			return Failed, fmt.Errorf("encode a patch: %w", err)
		}
		_, err = client.Patch(ctx, m.Name, types.MergePatchType, body, metav1.PatchOptions{})
		switch {
		case err == nil:
			return Done, nil
		case isGone(err):
			return Gone, nil
		case !apierrors.IsConflict(err) || try == tries:
			return Failed, fmt.Errorf("change the finalizers of %s %s: %w", gvr.GroupResource(), name(m), err)
		}
		live, err := client.Get(ctx, m.Name, metav1.GetOptions{})
		switch {
		case isGone(err) || err == nil && live.UID != uid:
			return Gone, nil
		case err != nil:
			return Failed, fmt.Errorf("read %s %s: %w", gvr.GroupResource(), name(m), err)
		}
		m = &live.ObjectMeta
	}
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

func name(m *metav1.ObjectMeta) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

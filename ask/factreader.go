package ask

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// factReader reads what metadata does not tell. It notes in the World what it cannot read, which
// reports it once at the end.
type factReader struct {
	client dynamic.Interface
	world  *insight.World
}

// missed notes what could not be read, unless its whole kind is noted already.
func (r *factReader) missed(kind schema.GroupVersionResource, in, name string, err error) {
	if r.world.Unreadable(kind.GroupResource()) {
		return
	}
	what := kind.GroupResource().String()
	if name != "" {
		what += " " + name
	}
	if in != "" {
		what += " in the namespace " + in
	}
	r.world.Missed(what, apierrors.IsForbidden(err), snapshot.ReasonOf(err))
}

// list returns the objects of a kind in a namespace; none if they cannot be read.
func (r *factReader) list(
	ctx context.Context, kind schema.GroupVersionResource, in string,
) []unstructured.Unstructured {
	list, err := r.client.Resource(kind).Namespace(in).List(ctx, metav1.ListOptions{})
	if err != nil {
		r.missed(kind, in, "", err)
		return nil
	}
	return list.Items
}

// get returns a cluster-scoped object; nil if it does not exist, or cannot be read.
func (r *factReader) get(
	ctx context.Context, kind schema.GroupVersionResource, name string,
) *unstructured.Unstructured {
	u, err := r.client.Resource(kind).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		if !apierrors.IsNotFound(err) {
			r.missed(kind, "", name, err)
		}
		return nil
	}
	return u
}

// gone reports whether a cluster-scoped object does not exist; nil if that cannot be determined.
func (r *factReader) gone(ctx context.Context, kind schema.GroupVersionResource, name string) *bool {
	_, err := r.client.Resource(kind).Get(ctx, name, metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		r.missed(kind, "", name, err)
		return nil
	}
	return &gone
}

const (
	// eventPage is the page size of lists of Events.
	eventPage = 1000
	// mostEvents bounds the Events that are read in a namespace.
	mostEvents = 10 * eventPage
)

// events returns Weir's Events in some namespaces, or in all if one is empty, that tell who refuses
// or holds requests of its controller, as far as they can be read.
func (r *factReader) events(ctx context.Context, namespaces ...string) (out []corev1.Event) {
	for _, in := range namespaces {
		for _, reason := range []string{v1beta1.ReasonCollectionRefused, v1beta1.ReasonDeletionHeld} {
			some, all, err := eventsOf(ctx, r.client, in, "source=weir,reason="+reason, mostEvents)
			out = append(out, some...)
			if err != nil {
				r.missed(eventKind, in, "", err)
			} else if !all {
				r.world.Missed("all Events "+reason, false, fmt.Sprintf("there are too many: %d were read", len(some)))
			}
		}
	}
	return out
}

// heard tells the World who refuses requests of Weir's controller and of the namespace controller,
// in a namespace or in all, if anything is being deleted.
func (r *factReader) heard(ctx context.Context, in string) {
	if !r.world.Ends() {
		return
	}
	r.world.Heard(r.events(ctx, in), time.Now())
	spaces, _ := r.world.Listed(namespaceKind.GroupResource(), "")
	ends := func(m *metav1.PartialObjectMetadata) bool { return m.DeletionTimestamp != nil }
	if in != "" || !slices.ContainsFunc(spaces, ends) {
		return
	}
	all := r.list(ctx, namespaceKind, "")
	for i := range all {
		r.world.HeardOf(&all[i])
	}
}

// eventsOf returns the Events that a field selector selects, and whether they are all.
func eventsOf(ctx context.Context, client dynamic.Interface, in, selector string, most int) (
	out []corev1.Event, all bool, err error) {
	options := metav1.ListOptions{FieldSelector: selector, Limit: eventPage}
	for len(out) < most {
		list, err := client.Resource(eventKind).Namespace(in).List(ctx, options)
		if err != nil {
			return out, false, err
		}
		for i := range list.Items {
			var e corev1.Event
			if runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &e) == nil {
				out = append(out, e)
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return out, true, nil
		}
	}
	return out, false, nil
}

package webhook

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
)

// A review is what some client says that reached the port. Before anything is written, or disclosed
// of an object, the object is read, and has to be the one that the review is about.

// checkNames returns an error for a name that is not one segment of a path: names become parts of
// paths, and could lead elsewhere.
func checkNames(q *policies.Question) error {
	for _, n := range []struct{ what, name string }{
		{"group", q.Resource.Group}, {"version", q.Resource.Version}, {"resource", q.Resource.Resource},
		{"namespace", q.Namespace}, {"name", q.Name},
	} {
		if wrong := content.IsPathSegmentName(n.name); len(wrong) > 0 {
			return fmt.Errorf("the request's %s %.100q: %s", n.what, n.name, wrong[0])
		}
	}
	return nil
}

// get reads an object, or its metadata; both are nil if it is not there. The names are those of a
// review, so an answer about another object is an error.
func get(ctx context.Context, lister *finalizers.Lister, of schema.GroupVersionResource, namespace, name string,
	full bool) (map[string]any, *metav1.ObjectMeta, error) {
	object, m, err := lister.Get(ctx, of, namespace, name, full)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case err == nil && (m.Name != name || m.Namespace != namespace):
		err = fmt.Errorf("the API server answers with %q in namespace %q", m.Name, m.Namespace)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s %q: %w", of.GroupResource(), name, err)
	}
	return object, m, nil
}

// confirm reads the object of a DELETE, whole or its metadata, and returns the same question about
// the object as it is. The metadata is nil if the object is gone, or another is in its place. A
// review that contradicts itself or the API server is an error.
func confirm(
	ctx context.Context, lister *finalizers.Lister, q *policies.Question, full bool,
) (policies.Question, *metav1.ObjectMeta, error) {
	said := finalizers.MetaOf(q.OldObject)
	if err := contradiction(q, said); err != nil {
		return policies.Question{}, nil, err
	}
	object, live, err := get(ctx, lister, q.Resource, said.Namespace, said.Name, full)
	if err != nil || live == nil || live.UID != said.UID {
		return policies.Question{}, nil, err
	}
	if kind := (&unstructured.Unstructured{Object: object}).GroupVersionKind(); full && kind != q.Kind {
		return policies.Question{}, nil, fmt.Errorf("read %s %q: it is a %s, not a %s",
			q.Resource.GroupResource(), said.Name, kind, q.Kind)
	}
	return q.Of(object), live, nil
}

// contradiction returns why a request cannot be about its own object.
func contradiction(q *policies.Question, said *metav1.ObjectMeta) error {
	switch wrong := content.IsPathSegmentName(said.Name); {
	case said.UID == "":
		return errors.New("the oldObject has no uid")
	case said.Name == "" || len(wrong) > 0:
		return fmt.Errorf("the oldObject's name is %.100q", said.Name)
	case q.Name != "" && q.Name != said.Name:
		return fmt.Errorf("the request is about %.100q, its oldObject is %.100q", q.Name, said.Name)
	case q.Resource.GroupResource() == namespaces: // its request has it in itself
		if q.Namespace != "" && q.Namespace != said.Name || said.Namespace != "" {
			return fmt.Errorf("the request is about namespace %.100q, its oldObject is %.100q", q.Namespace, said.Name)
		}
	case q.Namespace != said.Namespace:
		return fmt.Errorf("the request is about namespace %.100q, its oldObject is in %.100q", q.Namespace, said.Namespace)
	}
	return nil
}

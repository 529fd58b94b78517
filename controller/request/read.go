package request

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/metaonly"
)

// Get reads the metadata of one object live: a consistent read, and not from a cache.
func (r *Client) Get(
	ctx context.Context, gv schema.GroupVersion, resource, namespace, name string,
) (*metav1.PartialObjectMetadata, error) {
	req := object(r.client.Get(), gv, resource, namespace, name)
	return r.doForMetadata(ctx, "get", gv.WithResource(resource).GroupResource(), req)
}

// GetObject reads the metadata of an object live.
func (r *Client) GetObject(ctx context.Context, ref graph.Ref) (*metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, gv, ref.Kind.Resource, ref.Namespace, ref.Name)
}

// GetRaw reads one object live, and returns it as the API server writes it.
func (r *Client) GetRaw(ctx context.Context, ref graph.Ref) (json.RawMessage, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, err
	}
	return r.raw(ctx, gv, ref)
}

func (r *Client) raw(ctx context.Context, gv schema.GroupVersion, ref graph.Ref) (json.RawMessage, error) {
	req := object(r.client.Get(), gv, ref.Kind.Resource, ref.Namespace, ref.Name)
	result, err := r.do(ctx, "get", ref.Kind, req.SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, err
	}
	return result.Raw()
}

// GetFull reads one whole object live.
func (r *Client) GetFull(ctx context.Context, ref graph.Ref) (map[string]any, *metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, nil, err
	}
	return r.getWhole(ctx, gv, ref)
}

func (r *Client) getWhole(
	ctx context.Context, gv schema.GroupVersion, ref graph.Ref,
) (map[string]any, *metav1.PartialObjectMetadata, error) {
	raw, err := r.raw(ctx, gv, ref)
	if err != nil {
		return nil, nil, err
	}
	full, m := map[string]any{}, &metav1.PartialObjectMetadata{}
	if err := errors.Join(utiljson.Unmarshal(raw, &full), json.Unmarshal(raw, m)); err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", ref, err)
	}
	if m.UID == "" {
		return nil, nil, errors.New("decode the answer: it has no uid")
	}
	return full, m, nil
}

// rawPage is how many whole objects are listed in a page, and so in memory.
const rawPage = "50"

// EachRaw lists the objects of a kind live, in a namespace or, without one, in all. It calls each
// with every object as the API server writes it: those of built-in kinds have no apiVersion and
// kind. It returns the first error of each.
func (r *Client) EachRaw(
	ctx context.Context, kind schema.GroupResource, namespace string, each func(json.RawMessage) error,
) error {
	gv, err := r.versionOf(kind)
	if err != nil {
		return err
	}
	for next := ""; ; {
		req := metaonly.At(r.client.Get(), gv.WithResource(kind.Resource), namespace).Param("limit", rawPage)
		if next != "" {
			req.Param("continue", next)
		}
		result, err := r.do(ctx, "list", kind, req.SetHeader("Accept", "application/json"))
		if err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		var list struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if raw, err := result.Raw(); err != nil || json.Unmarshal(raw, &list) != nil {
			return fmt.Errorf("list %s: the answer is not understood", kind)
		}
		for _, raw := range list.Items {
			if err := each(raw); err != nil {
				return err
			}
		}
		if next = list.Metadata.Continue; next == "" {
			return nil
		}
	}
}

// mostList bounds a list as a whole, including waits for places: its caller does nothing else
// meanwhile. A million objects take that long if a page takes 0.3 s.
const mostList = 5 * time.Minute

// List lists the objects of a namespaced kind live, in a namespace or, without one, in all. It
// calls each with every object as it comes, and keeps none: labels and annotations of others may be
// more than fits in memory. After an error, each may have been called with some objects, which
// prove nothing. A list that shows an object of another namespace is an error: by that list objects
// would be deleted in namespaces that are not.
func (r *Client) List(
	ctx context.Context, kind schema.GroupResource, namespace string, each func(*metav1.PartialObjectMetadata),
) error {
	gv, err := r.versionOf(kind)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, mostList)
	defer cancel()
	err = r.listPages(within, gv, kind, namespace, each)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("list %s: it has not ended after %s: %w", kind, mostList, err)
	}
	return err
}

// listPages lists page by page. What is listed in the wrong place is no failure of the API server,
// and so no error of the request.
func (r *Client) listPages(
	ctx context.Context, gv schema.GroupVersion, kind schema.GroupResource, namespace string,
	each func(*metav1.PartialObjectMetadata),
) error {
	in := r.lists.Kind(gv.WithResource(kind.Resource), namespace)
	pages := metaonly.Pages{}
	for o := (metav1.ListOptions{Limit: 1000}); ; {
		var wrong error
		err := r.Send(ctx, "list", kind, func(ctx context.Context) error {
			is, err := in.Page(ctx, o, func(m *metav1.PartialObjectMetadata) {
				pages.Saw(&m.ObjectMeta)
				if wrong = cmp.Or(wrong, checkPlace(namespace, m)); wrong == nil {
					each(m)
				}
			})
			o.Continue = is.Continue
			return err
		})
		if err != nil {
			return err
		}
		if err := cmp.Or(wrong, pages.Next(o.Continue)); err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		if o.Continue == "" {
			return nil
		}
	}
}

// checkPlace checks that a listed object has a uid, and that it is in the namespace of the list, or
// in any if the list is of all. It completes the namespace of an object that names none in a
// namespace's list.
func checkPlace(namespace string, m *metav1.PartialObjectMetadata) error {
	if m.UID == "" {
		return fmt.Errorf("the API lists %q without a uid", m.Name)
	}
	if m.Namespace == "" {
		m.Namespace = namespace
	}
	if m.Namespace == "" || namespace != "" && m.Namespace != namespace {
		return fmt.Errorf("the API lists %q of namespace %q in namespace %q", m.Name, m.Namespace, namespace)
	}
	return nil
}

// Lookup answers a claim by a live read of the object that it names.
func (r *Client) Lookup(ctx context.Context, c graph.Claim) (graph.Answer, string) {
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	if err != nil {
		return graph.Unanswered, err.Error()
	}
	namespace := ""
	if c.Namespaced {
		namespace = c.Namespace
	}
	m, err := r.Get(ctx, gv, c.Resource.Resource, namespace, c.Name)
	switch {
	case err == nil && m.UID == c.UID:
		return graph.Present, ""
	case err == nil:
		return graph.Absent, ""
	case NoSuchObject(err, c.Resource, c.Name):
		if why := r.otherwiseDefined(ctx, c); why != "" {
			return graph.Unanswered, why
		}
		return graph.Absent, ""
	case apierrors.IsForbidden(err) && !RefusedByWebhook(err):
		return graph.Denied, err.Error()
	}
	return graph.Unanswered, err.Error()
}

// otherwiseDefined returns why an API server may look in the wrong place for a custom resource;
// empty if nothing speaks for that. One of several API servers may not have seen yet that a
// definition was deleted and created again with another scope. It finds nothing then, and answers
// as if it knew. The definition itself is read live.
func (r *Client) otherwiseDefined(ctx context.Context, c graph.Claim) string {
	if !strings.Contains(c.Resource.Group, ".") {
		return ""
	}
	gv := schema.GroupVersion{Group: kinds.Definitions.Group, Version: "v1"}
	definition := graph.Ref{Kind: kinds.Definitions, Name: c.Resource.String()}
	whole, _, err := r.getWhole(ctx, gv, definition)
	switch {
	case NoSuchObject(err, kinds.Definitions, definition.Name): // built in, aggregated, or gone with all of its objects
		return ""
	case apierrors.IsForbidden(err): // it will never be known
		return ""
	case err != nil:
		return fmt.Sprintf("read the definition of %s: %v", c.Resource, err)
	}
	spec, _ := whole["spec"].(map[string]any)
	if scope, _ := spec["scope"].(string); scope != "" && (scope == "Namespaced") != c.Namespaced {
		return fmt.Sprintf("%s are defined with scope %s by now, and are not served so yet", c.Resource, scope)
	}
	return ""
}

// IsGone reports, by a live read, whether the object does not exist, or another has its name.
func (r *Client) IsGone(ctx context.Context, ref graph.Ref) bool {
	live, err := r.GetObject(ctx, ref)
	return err == nil && live.UID != ref.UID || NoSuchObject(err, ref.Kind, ref.Name)
}

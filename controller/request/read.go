package request

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
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/metaonly"
)

// Get reads one object live: a consistent read, not one from a cache.
func (r *Client) Get(ctx context.Context, gv schema.GroupVersion, resource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return r.doForMetadata(ctx, "get", gv.WithResource(resource).GroupResource(), object(r.client.Get(), gv, resource, namespace, name))
}

// GetObject reads the object of an action live.
func (r *Client) GetObject(ctx context.Context, ref graph.Ref) (*metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, gv, ref.Kind.Resource, ref.Namespace, ref.Name)
}

// GetFull reads one object live, with all that is in it.
func (r *Client) GetFull(ctx context.Context, ref graph.Ref) (map[string]any, *metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(ref.Kind)
	if err != nil {
		return nil, nil, err
	}
	return r.getWhole(ctx, gv, ref)
}

func (r *Client) getWhole(ctx context.Context, gv schema.GroupVersion, ref graph.Ref) (map[string]any, *metav1.PartialObjectMetadata, error) {
	result, err := r.do(ctx, "get", ref.Kind, object(r.client.Get(), gv, ref.Kind.Resource, ref.Namespace, ref.Name).SetHeader("Accept", "application/json"))
	if err != nil {
		return nil, nil, err
	}
	raw, err := result.Raw()
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

// mostList bounds a list as a whole, with the wait for places: whoever asked for it does nothing else meanwhile. A million objects take so long where a
// page takes 0.3 s.
const mostList = 5 * time.Minute

// List reads what a namespace holds of a namespaced kind, live and whole; with no namespace, what all of them do. A list with an object of another
// namespace is an error: by such a list objects would be deleted that are in no namespace that goes.
func (r *Client) List(ctx context.Context, kind schema.GroupResource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	gv, err := r.versionOf(kind)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, mostList)
	defer cancel()
	all, err := r.listPages(within, gv, kind, namespace)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("list %s: it has not ended after %s: %w", kind, mostList, err)
	}
	return all, err
}

// listPages reads a list page by page.
func (r *Client) listPages(ctx context.Context, gv schema.GroupVersion, kind schema.GroupResource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	pages := metaonly.Pages{}
	for next := ""; ; {
		req := collection(r.client.Get(), gv, kind.Resource, namespace).SetHeader("Accept", acceptMetadataList).Param("limit", "1000")
		if next != "" {
			req.Param("continue", next)
		}
		result, err := r.do(ctx, "list", kind, req)
		if err != nil {
			return nil, err
		}
		list, err := decode[metav1.PartialObjectMetadataList](result)
		if err != nil {
			return nil, fmt.Errorf("decode the list: %w", err)
		}
		// The kind is empty where the codec knew it.
		if list.Kind != "" && !strings.HasSuffix(list.Kind, "List") || slices.ContainsFunc(list.Items, func(m metav1.PartialObjectMetadata) bool { return m.UID == "" }) {
			return nil, fmt.Errorf("decode the list: a %s is no list of objects with uids", list.Kind)
		}
		if err := allIn(namespace, list.Items); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		all = append(all, list.Items...)
		var first *metav1.PartialObjectMetadata
		if len(list.Items) > 0 {
			first = &list.Items[0]
		}
		if err := pages.Next(first, list.Continue); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		if next = list.Continue; next == "" {
			return all, nil
		}
	}
}

// allIn makes sure that the items of a namespace's list are there, and those of a list of all namespaces in one. An API that does not say where they are
// in a namespace's list means that namespace.
func allIn(namespace string, items []metav1.PartialObjectMetadata) error {
	for i := range items {
		m := &items[i]
		if m.Namespace == "" {
			m.Namespace = namespace
		}
		if m.Namespace == "" || namespace != "" && m.Namespace != namespace {
			return fmt.Errorf("the API lists %q of namespace %q in namespace %q", m.Name, m.Namespace, namespace)
		}
	}
	return nil
}

// Lookup answers a claim by a live read of the place that it names.
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

// otherwiseDefined says why an API server may not know where to look for a custom resource; "" if nothing speaks for that. One
// of several may not have seen yet that a definition was deleted and made again with another scope. It looks in the wrong place
// then, finds nothing, and says so as if it knew. The definition itself it reads live.
func (r *Client) otherwiseDefined(ctx context.Context, c graph.Claim) string {
	if !strings.Contains(c.Resource.Group, ".") {
		return ""
	}
	gv := schema.GroupVersion{Group: kinds.Definitions.Group, Version: "v1"}
	definition := graph.Ref{Kind: kinds.Definitions, Name: c.Resource.String()}
	whole, _, err := r.getWhole(ctx, gv, definition)
	switch {
	case NoSuchObject(err, kinds.Definitions, definition.Name): // built in, aggregated, or gone, and all objects with it
		return ""
	case apierrors.IsForbidden(err): // it cannot be known, here or ever
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

// IsGone tells, by a live read, whether an API server that knows the kind has no such object, or has another
// one under its name.
func (r *Client) IsGone(ctx context.Context, ref graph.Ref) bool {
	live, err := r.GetObject(ctx, ref)
	return err == nil && live.UID != ref.UID || NoSuchObject(err, ref.Kind, ref.Name)
}

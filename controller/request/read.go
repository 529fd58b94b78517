package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

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

// mostList bounds a list as a whole, with the wait for places: whoever asked for it does nothing
// else meanwhile. A million objects take so long where a page takes 0.3 s.
const mostList = 5 * time.Minute

// List reads what a namespace holds of a namespaced kind, live and whole; with no namespace, what
// all of them do. Each object is handed on as it comes, and not kept: what others put into labels
// and annotations is more than there is memory. After an error each may have had some of them,
// which prove nothing. A list with an object of another namespace is an error: by such a list
// objects would be deleted that are in no namespace that goes.
func (r *Client) List(ctx context.Context, kind schema.GroupResource, namespace string, each func(*metav1.PartialObjectMetadata)) error {
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

// listPages reads a list page by page.
func (r *Client) listPages(ctx context.Context, gv schema.GroupVersion, kind schema.GroupResource, namespace string, each func(*metav1.PartialObjectMetadata)) error {
	pages := metaonly.Pages{}
	for next := ""; ; {
		req := collection(r.client.Get(), gv, kind.Resource, namespace).Param("limit", "1000")
		if next != "" {
			req.Param("continue", next)
		}
		var wrong error
		is, err := r.listPage(ctx, kind, req, func(m *metav1.PartialObjectMetadata) {
			if err := placeOf(namespace, m); err != nil && wrong == nil {
				wrong = fmt.Errorf("list %s: %w", kind, err)
			}
			pages.Saw(&m.ObjectMeta)
			if wrong == nil {
				each(m)
			}
		})
		if err == nil {
			err = wrong
		}
		if err != nil {
			return err
		}
		if err := pages.Next(is.Continue); err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		if next = is.Continue; next == "" {
			return nil
		}
	}
}

// listPage reads one page. An answer that breaks off is the API server's failure; one that is not
// understood says nothing of it. The kind is asked for in JSON from then on.
func (r *Client) listPage(ctx context.Context, kind schema.GroupResource, req *rest.Request, each func(*metav1.PartialObjectMetadata)) (is metav1.ListMeta, err error) {
	accept := acceptMetadataList
	if _, plain := r.plain.Load(kind); plain {
		accept = acceptPlainList
	}
	var misread error
	err = r.Send(ctx, "list", kind, func(ctx context.Context) error {
		answer, err := req.SetHeader("Accept", accept).Stream(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Close() }() // all of it was read, or it is given up
		in := &answering{Reader: answer}
		is, misread = metaonly.ReadList(in, each)
		return in.broke
	})
	if err == nil && misread != nil {
		r.plain.Store(kind, true)
		err = fmt.Errorf("decode the list: %w", misread)
	}
	return is, err
}

// answering is an answer that remembers whether it broke off.
type answering struct {
	io.Reader
	broke error
}

// Read implements io.Reader.
func (a *answering) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.broke = err
	}
	return n, err
}

// placeOf makes sure that an object of a namespace's list is there, and one of a list of all
// namespaces in one, and which object it is. An API that does not say where it is in a namespace's
// list means that namespace.
func placeOf(namespace string, m *metav1.PartialObjectMetadata) error {
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

// otherwiseDefined says why an API server may not know where to look for a custom resource; "" if
// nothing speaks for that. One of several may not have seen yet that a definition was deleted and
// made again with another scope. It looks in the wrong place then, finds nothing, and says so as if
// it knew. The definition itself it reads live.
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

// IsGone tells, by a live read, whether an API server that knows the kind has no such object, or
// has another one under its name.
func (r *Client) IsGone(ctx context.Context, ref graph.Ref) bool {
	live, err := r.GetObject(ctx, ref)
	return err == nil && live.UID != ref.UID || NoSuchObject(err, ref.Kind, ref.Name)
}

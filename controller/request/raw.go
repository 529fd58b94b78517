package request

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/metaonly"
)

// rawPage is how many whole objects are listed in a page, and so in memory.
const rawPage = "50"

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

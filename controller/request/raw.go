package request

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
)

// rawPage is how many whole objects are listed in a page. They are handed on one by one, so this
// bounds only how long a request takes.
const rawPage = "100"

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
		req := collection(r.client.Get(), gv, kind.Resource, namespace).Param("limit", rawPage)
		if next != "" {
			req.Param("continue", next)
		}
		var stopped error
		err := r.Send(ctx, "list", kind, func(ctx context.Context) error {
			answer, err := req.SetHeader("Accept", "application/json").Stream(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = answer.Close() }() // read to its end, or given up
			next, err = eachItem(answer, func(raw json.RawMessage) error {
				stopped = each(raw)
				return stopped
			})
			if stopped != nil {
				return nil // no failure of the API server
			}
			return err
		})
		if stopped != nil {
			return stopped
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		if next == "" {
			return nil
		}
	}
}

// eachItem calls each with every item of a list in JSON, and returns the continue token.
func eachItem(list io.Reader, each func(json.RawMessage) error) (next string, err error) {
	d := json.NewDecoder(list)
	if _, err := d.Token(); err != nil {
		return "", err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		switch key {
		case "items":
			begin, err := d.Token()
			for err == nil && begin != nil && d.More() {
				var raw json.RawMessage
				if err = d.Decode(&raw); err == nil {
					err = each(raw)
				}
			}
			if err == nil && begin != nil {
				_, err = d.Token()
			}
			if err != nil {
				return "", err
			}
		case "metadata":
			var m metav1.ListMeta
			if err := d.Decode(&m); err != nil {
				return "", err
			}
			next = m.Continue
		default:
			var other json.RawMessage
			if err := d.Decode(&other); err != nil {
				return "", err
			}
		}
	}
	_, err = d.Token() // without it the list is cut off
	return next, err
}

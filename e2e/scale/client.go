package scale

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/e2e/load"
)

// A client makes and changes objects with as little work as it can: it shares two cores with what
// is measured. It reads of an answer what is asked of it later, and has the API server send the
// metadata alone.
type client struct{ *rest.RESTClient }

const asMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

func newClient(cfg *rest.Config) (client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	cfg.WarningHandler = rest.NoWarnings{}
	c, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return client{}, fmt.Errorf("make a client: %w", err)
	}
	return client{c}, nil
}

// pathOf is where the objects of a kind are, in a namespace.
func pathOf(kind load.Kind, namespace string) string {
	root := "/apis/" + kind.Group
	if kind.Group == "" {
		root = "/api"
	}
	return root + "/" + kind.Version + "/namespaces/" + namespace + "/" + kind.Resource
}

func (c client) create(ctx context.Context, t Template, namespace, name string, owner *reference) (load.Object, error) {
	meta := map[string]any{"name": name}
	if owner != nil {
		meta["ownerReferences"] = []*reference{owner}
	}
	apiVersion, kind := t.ToAPIVersionAndKind()
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	for k, v := range t.Body {
		object[k] = v
	}
	body, err := json.Marshal(object)
	if err != nil {
		return load.Object{}, err
	}
	result := c.Post().AbsPath(pathOf(t.Kind, namespace)).SetHeader("Content-Type", "application/json").SetHeader("Accept", asMetadata).Body(body).Do(ctx)
	if err := result.Error(); err != nil {
		return load.Object{}, fmt.Errorf("create %s %s: %w", t.Resource, name, err)
	}
	answer, err := result.Raw()
	if err != nil {
		return load.Object{}, fmt.Errorf("create %s %s: %w", t.Resource, name, err)
	}
	var made struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return load.Object{}, fmt.Errorf("create %s %s: %w", t.Resource, name, err)
	}
	return load.Object{Name: name, UID: made.Metadata.UID, ResourceVersion: made.Metadata.ResourceVersion}, nil
}

// touch changes an annotation, which no controller reads.
func (c client) touch(ctx context.Context, kind load.Kind, namespace, name, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"touched": value}}})
	if err != nil {
		return err
	}
	err = c.Patch(types.MergePatchType).AbsPath(pathOf(kind, namespace), name).SetHeader("Accept", asMetadata).Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("change %s %s: %w", kind.Resource, name, err)
	}
	return nil
}

// A reference is an owner reference that blocks the owner's deletion.
type reference struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Blocks     bool      `json:"blockOwnerDeletion"`
}

func referenceTo(kind load.Kind, o load.Object) *reference {
	apiVersion, k := kind.ToAPIVersionAndKind()
	return &reference{apiVersion, k, o.Name, o.UID, true}
}

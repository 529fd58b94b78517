package load

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Touch changes the data of every dependent to what it never was, and nothing that a webhook of
// weir's judges. The objects must be ConfigMaps.
func Touch(ctx context.Context, cfg *rest.Config, p *Population) error {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("touch %s: %w", p.Namespace, err)
	}
	patch := fmt.Appendf(nil, `{"data":{"touched":%q}}`, time.Now().Format(time.RFC3339Nano))
	in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
	err = Each(ctx, len(p.Dependents), func(ctx context.Context, i int) error {
		_, err := in.Patch(ctx, p.Dependents[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("touch %s: %w", p.Namespace, err)
	}
	return nil
}

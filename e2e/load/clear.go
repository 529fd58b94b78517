package load

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Clear deletes what a population is, as it is by now, by one request.
func Clear(ctx context.Context, cfg *rest.Config, p *Population) error {
	client, err := metadata.NewForConfig(cfg)
	if err == nil {
		in := client.Resource(p.Layout.Kind.GVR()).Namespace(p.Namespace)
		err = in.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{})
	}
	if err != nil {
		return fmt.Errorf("clear %s: %w", p.Namespace, err)
	}
	return nil
}

package cmd

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// whoCollects returns a function by which the webhook learns who collects garbage. It reads the
// canary in the namespace; nil if there is none.
func whoCollects(b *begun, namespace string) (func(context.Context) (policies.Collector, error), error) {
	if namespace == "" {
		return nil, nil
	}
	config := rest.CopyConfig(b.config)
	config.QPS, config.Burst = 20, 40
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the canary: %w", err)
	}
	return func(ctx context.Context) (policies.Collector, error) {
		canary, err := core.ConfigMaps(namespace).Get(ctx, v1beta1.CollectorCanary, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return policies.OthersCollect, nil
		case err != nil:
			return policies.CollectorUnknown, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, v1beta1.CollectorCanary, err)
		}
		who, err := policies.CollectorBy(&canary.ObjectMeta, b.state.Now())
		if err != nil {
			return who, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, v1beta1.CollectorCanary, err)
		}
		return who, nil
	}, nil
}

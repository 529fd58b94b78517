package release

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
)

// stopTimeout bounds the wait for a controller that was told to stop: a pod has half a minute to end, and a Lease that
// no process gave back runs out in a quarter.
const stopTimeout = 2 * time.Minute

// StopController scales a controller's Deployment to nothing, and returns when none of its pods is left and no process holds
// the Lease in its namespace. A Deployment that is not there has been stopped.
func StopController(ctx context.Context, config *rest.Config, deployment types.NamespacedName) error {
	client, err := typedappsv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for deployments: %w", err)
	}
	deployments := client.Deployments(deployment.Namespace)
	_, err = deployments.Patch(ctx, deployment.Name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}, "scale")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scale Deployment %s to 0: %w", deployment, err)
	}
	lease := &Release{LeaseNamespace: deployment.Namespace}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, stopTimeout, true, func(ctx context.Context) (bool, error) {
		d, err := deployments.Get(ctx, deployment.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			last = fmt.Errorf("read the Deployment: %w", err)
			return false, nil
		case d.Status.ObservedGeneration < d.Generation || d.Status.Replicas > 0:
			last = fmt.Errorf("%d of its pods are left", d.Status.Replicas)
			return false, nil
		}
		last = lease.noControllerWorks(ctx, config)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until Deployment %s has stopped: %w (%w)", deployment, err, last)
	}
	return nil
}

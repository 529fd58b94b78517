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

// stopTimeout bounds the wait for a controller to stop: a pod has 30 s to end, and a Lease that was
// not given back expires after 15 s.
const stopTimeout = 2 * time.Minute

// StopController scales a controller's Deployment to 0, and returns when none of its pods is left
// and no process holds the Lease in its namespace. A missing Deployment counts as stopped.
func StopController(ctx context.Context, config *rest.Config, deployment types.NamespacedName) error {
	client, err := typedappsv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for deployments: %w", err)
	}
	deployments := client.Deployments(deployment.Namespace)
	none := []byte(`{"spec":{"replicas":0}}`)
	_, err = deployments.Patch(ctx, deployment.Name, types.MergePatchType, none, metav1.PatchOptions{}, "scale")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scale Deployment %s to 0: %w", deployment, err)
	}
	w, err := (&Release{Config: config, LeaseNamespace: deployment.Namespace}).begin()
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, stopTimeout, true,
		func(ctx context.Context) (bool, error) {
			left := podsLeft(ctx, deployments, deployment.Name)
			if left == nil {
				left = w.noControllerWorks(ctx)
			}
			if last == nil || ctx.Err() == nil { // a read that the end of the wait cuts short says nothing about the controller
				last = left
			}
			return left == nil, nil
		})
	if err != nil {
		return fmt.Errorf("wait until Deployment %s has stopped: %w (%w)", deployment, err, last)
	}
	return nil
}

// podsLeft returns an error that says how many pods a Deployment has, or that this cannot be read;
// nil if it has none.
func podsLeft(ctx context.Context, deployments typedappsv1.DeploymentInterface, name string) error {
	d, err := deployments.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the Deployment: %w", err)
	case d.Status.ObservedGeneration < d.Generation || d.Status.Replicas > 0:
		return fmt.Errorf("%d of its pods are left", d.Status.Replicas)
	}
	return nil
}

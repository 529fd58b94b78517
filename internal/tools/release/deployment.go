package release

import (
	"context"
	"errors"
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

// NoHelmRelease stands for the name of a Helm release if the chart was rendered without a cluster,
// as by helm template, and never by helm install. No Helm release has this name.
const NoHelmRelease = "-"

// helmReleaseAnnotation is written by Helm on the objects of a release as it sends them. It is not
// in the manifests that Helm prints.
const helmReleaseAnnotation = "meta.helm.sh/release-name"

// ErrNotHelm is the error of a hook of Helm that something other than Helm has run. A retry would
// fail, too.
var ErrNotHelm = errors.New("nothing was changed: this is the hook that Helm runs when the release is uninstalled")

// RunByHelm returns an error if a hook of a Helm release was run by a tool that applies the output
// of helm template. Helm prints hooks, too, and applying Weir is no reason to release everything. A
// missing Deployment was deleted before: a helm uninstall that did not finish is run again.
func RunByHelm(ctx context.Context, config *rest.Config, helmRelease string, deployment types.NamespacedName) error {
	const instead = "delete the Job, and render the chart with helm template --no-hooks; to release everything all " +
		"the same, run weir release without --helm-release, or set uninstall.helmOnly to false where a tool runs the " +
		"hook in Helm's place (Argo CD)"
	if helmRelease == NoHelmRelease {
		return fmt.Errorf("%w, and the chart was rendered without a cluster, so it was not Helm that applied it: %s",
			ErrNotHelm, instead)
	}
	client, err := typedappsv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for deployments: %w", err)
	}
	d, err := client.Deployments(deployment.Namespace).Get(ctx, deployment.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("find out whether Deployment %s is of Helm release %s: %w", deployment, helmRelease, err)
	}
	if of := d.Annotations[helmReleaseAnnotation]; of != helmRelease {
		return fmt.Errorf("%w, and Deployment %s is not of Helm release %s (its annotation %s is %q): %s",
			ErrNotHelm, deployment, helmRelease, helmReleaseAnnotation, of, instead)
	}
	return nil
}

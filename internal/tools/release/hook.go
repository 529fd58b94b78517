package release

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
)

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

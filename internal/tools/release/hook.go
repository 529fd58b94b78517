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

// NoHelmRelease stands in place of the name of a Helm release where the chart was rendered without
// a cluster: helm template does that, and no helm install. No Helm release has this name.
const NoHelmRelease = "-"

// helmReleaseAnnotation is written by Helm on the objects of a release when it sends them. It is
// not in the manifests that Helm prints.
const helmReleaseAnnotation = "meta.helm.sh/release-name"

// ErrNotHelm is that of a hook of Helm that something else than Helm has run. To try again changes
// nothing.
var ErrNotHelm = errors.New("nothing was changed: this is the hook that Helm runs when the release is uninstalled")

// RunByHelm makes sure that a hook of a Helm release is not run by a tool that applies what helm
// template prints. Helm prints hooks, too, and that Weir was applied is no reason to release
// everything. A Deployment that is not there was deleted before: a helm uninstall that did not end
// is run again.
func RunByHelm(ctx context.Context, config *rest.Config, helmRelease string, deployment types.NamespacedName) error {
	const instead = "delete the Job, and render the chart with helm template --no-hooks; to release everything all the same, " +
		"run weir release without --helm-release, or set uninstall.helmOnly to false where a tool runs the hook in Helm's place (Argo CD)"
	if helmRelease == NoHelmRelease {
		return fmt.Errorf("%w, and the chart was rendered without a cluster, so it was not Helm that applied it: %s", ErrNotHelm, instead)
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

package release

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// The controller's objects about itself in its namespace. Without a controller they are out of
// date: kubectl weir plan would go on to report policies that nothing enforces.
var (
	ownLeases     = []string{LeaseName, policies.Canary}
	ownConfigMaps = []string{v1beta1.FilePolicies, v1beta1.CollectorCanary, v1beta1.DeletedOwners}
)

// removeOwn deletes these objects, and last of all: until then the Lease tells whether a controller
// works. With Force it keeps them, because a controller may still need them.
func (r *Release) removeOwn(ctx context.Context, config *rest.Config) (n int, err error) {
	if r.Force {
		return 0, nil
	}
	leases, err := typedcoordinationv1.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("make a leases client: %w", err)
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("make a client for configmaps: %w", err)
	}
	namespaces, err := r.ownNamespaces(ctx, leases)
	if err != nil {
		return 0, err
	}
	for _, namespace := range namespaces {
		leases, maps := leases.Leases(namespace), core.ConfigMaps(namespace)
		for _, own := range []struct {
			resource string
			names    []string
			read     func(string) error
			delete   func(context.Context, string, metav1.DeleteOptions) error
		}{
			{"leases.coordination.k8s.io", ownLeases, func(name string) error {
				_, err := leases.Get(ctx, name, metav1.GetOptions{})
				return err
			}, leases.Delete},
			{"configmaps", ownConfigMaps, func(name string) error {
				_, err := maps.Get(ctx, name, metav1.GetOptions{})
				return err
			}, maps.Delete},
		} {
			for _, name := range own.names {
				what := fmt.Sprintf("%s %s/%s", own.resource, namespace, name)
				there, err := r.remove(what, func() error { return own.read(name) },
					func() error { return own.delete(ctx, name, metav1.DeleteOptions{}) })
				if err != nil {
					return n, fmt.Errorf("delete %s: %w", what, err)
				}
				n += there
			}
		}
	}
	return n, nil
}

// ownNamespaces returns the namespace in which a controller has held its Lease. Any user who may
// write Leases in a namespace can make one of that name, so if there are several, none is touched
// unless the user names one.
func (r *Release) ownNamespaces(
	ctx context.Context, leases typedcoordinationv1.LeasesGetter,
) (out []string, err error) {
	if r.LeaseNamespace != "" {
		return []string{r.LeaseNamespace}, nil
	}
	list, err := leases.Leases(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + LeaseName})
	if err != nil {
		return nil, fmt.Errorf("find the namespace that weir ran in: %w", err)
	}
	for i := range list.Items {
		out = append(out, list.Items[i].Namespace)
	}
	if len(out) > 1 {
		return nil, fmt.Errorf("delete what weir wrote about itself: Leases %s are in the namespaces %s, and it is not "+
			"known which is weir's own. Run it again with --leader-elect-namespace",
			LeaseName, strings.Join(out, ", "))
	}
	return out, nil
}

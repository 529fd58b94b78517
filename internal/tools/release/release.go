// Package release removes Weir's finalizer from all objects, so that Weir can be taken out of a
// cluster: the work of weir release. It keeps no state; to resume is to start over.
//
// Goroutines: one for each kind that is listed and for each patch, joined by Release.Run. One lock
// guards the counts that it reports.
package release

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// LeaseName is the name of the leader's Lease.
const LeaseName = "weir-controller"

const (
	// releaseTimeout bounds each request of a release: an API that hangs is reported, not waited for.
	releaseTimeout = time.Minute
	// guardedFor is how long an API server may take to notice that the guard of the webhook
	// configurations is gone: it reloads its policies once a second.
	guardedFor = 20 * time.Second
)

// Release removes Weir's finalizer from all objects, so that nothing waits for a Weir that is gone,
// to uninstall it or in an emergency. It keeps no state: a release that was interrupted starts
// over, and finds what is left.
type Release struct {
	Config *rest.Config
	// LeaseNamespace is where the controller's Lease is looked for; "" for all namespaces.
	LeaseNamespace string
	// LeaseLikely makes LeaseNamespace a guess: if the Lease is not there, all namespaces are
	// searched.
	LeaseLikely bool
	// Force goes on although a controller is alive, or although that cannot be found out.
	Force bool
	// Window is for how long a request may be under way that got the finalizer before the webhook
	// configurations were deleted. All kinds are looked at again after it; with 0 they are not.
	Window time.Duration
	// DryRun writes nothing.
	DryRun bool
	// Found is called with each object that is released, or in a dry run would be, one call at a
	// time. It may be nil.
	Found func(string)
	// Progress is called when a kind was looked at, about every two seconds. It may be nil.
	Progress func(Released)
}

// Released is what a Release has done.
type Released struct {
	Kinds, Looked  int   // all kinds, and kinds that were looked at
	Seen           int64 // objects
	Released       int64 // objects whose finalizer was removed; in a dry run, that carry it
	Failed         int64 // objects that keep it
	WebhooksBefore int   // webhook configurations that were found
	Own            int   // other objects of Weir's own that were found
	// Failures are, sorted, what could not be released or looked at, and why.
	Failures []string
}

// Run releases everything that it finds. It returns an error if it did not begin or was
// interrupted; what could not be released is in the result.
func (r *Release) Run(ctx context.Context) (Released, error) {
	w, err := r.begin()
	if err != nil {
		return Released{}, err
	}
	if !r.DryRun && !r.Force {
		if err := w.noControllerWorks(ctx); err != nil {
			return Released{}, err
		}
	}
	if err := w.removeInProcess(ctx); err != nil {
		return Released{}, err
	}
	if err := w.removeWebhooks(ctx); err != nil {
		return Released{}, err
	}
	if err := w.run(ctx, time.Now()); err != nil {
		return w.outcome(nil), err
	}
	return w.outcome(w.removeOwn(ctx)), nil
}

func (r *Release) begin() (w *releasing, err error) {
	config := rest.CopyConfig(r.Config)
	config.QPS, config.Burst = -1, 0 // the number of requests at once is bounded, and the API server bounds it further
	config.Timeout = releaseTimeout
	config.WarningHandler = rest.NoWarnings{} // deprecated versions are read all the same
	w = &releasing{Release: r}
	if w.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	if w.leases, err = typedcoordinationv1.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a leases client: %w", err)
	}
	if w.objects, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for what is Weir's own: %w", err)
	}
	if w.lister, err = finalizers.NewLister(config); err != nil {
		return nil, err
	}
	w.writer, err = finalizers.New(config, nil) // it adds no finalizer
	return w, err
}

// leaderLeases returns the Leases of the leader's name.
func (w *releasing) leaderLeases(ctx context.Context) ([]coordinationv1.Lease, error) {
	byName := metav1.ListOptions{FieldSelector: "metadata.name=" + LeaseName}
	list, err := w.leases.Leases(w.LeaseNamespace).List(ctx, byName)
	if err == nil && len(list.Items) == 0 && w.LeaseLikely {
		w.LeaseNamespace = ""
		list, err = w.leases.Leases("").List(ctx, byName)
	}
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// noControllerWorks returns an error if a controller is alive, which would put finalizers back.
func (w *releasing) noControllerWorks(ctx context.Context) error {
	leases, err := w.leaderLeases(ctx)
	if err != nil {
		return fmt.Errorf("find out whether a weir controller is running, which would put its finalizer back: %w. "+
			"If you know that none is, go on with --force", err)
	}
	for _, l := range leases {
		if s := l.Spec; s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil ||
			s.LeaseDurationSeconds == nil {
			continue
		}
		ago := time.Since(l.Spec.RenewTime.Time) // less than 0 if the clocks differ
		if ago < time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second {
			return fmt.Errorf("a weir controller is running: the Lease %s/%s is held by %s and was renewed %s ago. It would "+
				"put its finalizer back. Scale its Deployment to 0, or stop the process, and try again once the Lease has run "+
				"out (%d s); if none runs there, delete that Lease, or name the namespace of weir's own with "+
				"--leader-elect-namespace; to go on regardless, add --force", l.Namespace, l.Name, *l.Spec.HolderIdentity,
				max(0, ago).Round(time.Second), *l.Spec.LeaseDurationSeconds)
		}
	}
	return nil
}

// removeInProcess deletes Weir's ValidatingAdmissionPolicies and bindings, which would go on
// refusing requests. They go first of all, because they guard the webhook configurations.
func (w *releasing) removeInProcess(ctx context.Context) error {
	for _, resource := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies"} {
		kind := admissionregistrationv1.SchemeGroupVersion.WithResource(resource)
		list, err := w.objects.Resource(kind).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.InProcessLabel})
		if apierrors.IsNotFound(err) { // the API server does not serve the kind
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", resource, err)
		}
		for i := range list.Items {
			there, err := w.remove(ctx, kind, "", list.Items[i].Name)
			if err != nil {
				return fmt.Errorf("%w: it would go on to refuse deletes", err)
			}
			w.result.Own += there
		}
	}
	return nil
}

// removeWebhooks deletes Weir's webhook configurations. They go before the finalizers: while they
// exist, an object gets the finalizer again at its next write.
func (w *releasing) removeWebhooks(ctx context.Context) error {
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		kind := admissionregistrationv1.SchemeGroupVersion.WithResource(resource)
		there, err := w.remove(ctx, kind, "", policies.WebhookConfigurations)
		if err != nil {
			return fmt.Errorf("%w: it would put the finalizer back", err)
		}
		w.result.WebhooksBefore += there
	}
	return nil
}

// removeOwn deletes the controller's objects about itself. Without a controller they are out of
// date: kubectl weir plan would go on to report policies that nothing enforces. They go last of
// all: until then the Lease tells whether a controller works. With Force they stay, because a
// controller may still need them.
func (w *releasing) removeOwn(ctx context.Context) error {
	if w.Force {
		return nil
	}
	namespace, err := w.ownNamespace(ctx)
	if err != nil || namespace == "" {
		return err
	}
	leases, configMaps := coordinationv1.SchemeGroupVersion.WithResource("leases"),
		corev1.SchemeGroupVersion.WithResource("configmaps")
	for _, own := range []struct {
		kind schema.GroupVersionResource
		name string
	}{
		{leases, LeaseName}, {leases, policies.Canary}, {configMaps, v1beta1.FilePolicies},
		{configMaps, v1beta1.CollectorCanary}, {configMaps, v1beta1.DeletedOwners},
	} {
		there, err := w.remove(ctx, own.kind, namespace, own.name)
		if err != nil {
			return err
		}
		w.result.Own += there
	}
	return nil
}

// ownNamespace returns the namespace in which a controller has held its Lease; "" if there is none.
// Any user who may write Leases in a namespace can make one of that name, so if there are several,
// none is touched unless the user names one.
func (w *releasing) ownNamespace(ctx context.Context) (string, error) {
	if w.LeaseNamespace != "" {
		return w.LeaseNamespace, nil
	}
	leases, err := w.leaderLeases(ctx)
	if err != nil {
		return "", fmt.Errorf("find the namespace that weir ran in: %w", err)
	}
	var in []string
	for i := range leases {
		in = append(in, leases[i].Namespace)
	}
	if len(in) > 1 {
		return "", fmt.Errorf("delete what weir wrote about itself: Leases %s are in the namespaces %s, and it is not "+
			"known which is weir's own. Run it again with --leader-elect-namespace", LeaseName, strings.Join(in, ", "))
	}
	return strings.Join(in, ""), nil
}

// remove deletes an object of Weir's, or in a dry run only reads it. It returns how many there
// were, 1 or 0. It tries again while the API server still applies the guard, which is deleted
// already.
func (w *releasing) remove(
	ctx context.Context, kind schema.GroupVersionResource, namespace, name string,
) (there int, err error) {
	what := kind.GroupResource().String() + " " + strings.TrimPrefix(namespace+"/"+name, "/")
	object := w.objects.Resource(kind).Namespace(namespace)
	if w.DryRun {
		_, err = object.Get(ctx, name, metav1.GetOptions{})
	} else {
		_ = wait.PollUntilContextTimeout(ctx, time.Second, guardedFor, true, func(context.Context) (bool, error) {
			err = object.Delete(ctx, name, metav1.DeleteOptions{})
			return !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), policies.InProcessGuardName), nil
		}) // err says more
	}
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("delete %s: %w", what, err)
	}
	w.found(what)
	return 1, nil
}

func (w *releasing) found(what string) {
	if w.Found != nil {
		w.Found(what)
	}
}

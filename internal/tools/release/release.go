package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// LeaseName is the name of the leader's Lease.
const LeaseName = "weir-controller"

// releaseTimeout bounds each request of a release: an API that hangs is reported, not waited for.
const releaseTimeout = time.Minute

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
	// Progress is called about every two seconds. It may be nil.
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
	// Marked are, sorted, the objects that keep the annotation without the finalizer, and why. Only
	// Weir reads it.
	Marked []string
}

// Run releases everything that it finds. It returns an error if it did not begin or was
// interrupted; what could not be released is in the result.
func (r *Release) Run(ctx context.Context) (Released, error) {
	if r.Config == nil {
		return Released{}, errors.New("release everything: no API server is configured")
	}
	config := rest.CopyConfig(r.Config)
	config.QPS, config.Burst = -1, 0 // the number of requests at once is bounded, and the API server bounds it further
	config.Timeout = releaseTimeout
	config.WarningHandler = rest.NoWarnings{} // deprecated versions are read all the same
	if !r.DryRun && !r.Force {
		if err := r.noControllerWorks(ctx, config); err != nil {
			return Released{}, err
		}
	}
	w, err := r.work(config)
	if err != nil {
		return Released{}, err
	}
	if w.result.Own, err = r.removeInProcess(ctx, config); err != nil {
		return Released{}, err
	}
	if w.result.WebhooksBefore, err = r.removeWebhooks(ctx, config); err != nil {
		return Released{}, err
	}
	w.deleted = time.Now()
	stop := w.report()
	defer stop()
	if err := w.run(ctx); err != nil {
		return w.outcome(), err
	}
	own, err := r.removeOwn(ctx, config)
	out := w.outcome()
	out.Own += own
	if err != nil {
		out.Failures = append(out.Failures, err.Error())
	}
	return out, nil
}

func (r *Release) work(config *rest.Config) (*releasing, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	lister, err := finalizers.NewLister(config)
	if err != nil {
		return nil, err
	}
	writer, err := finalizers.New(config, nil) // it adds no finalizer
	if err != nil {
		return nil, err
	}
	return &releasing{Release: r, discovery: disco, lister: lister, writer: writer}, nil
}

// noControllerWorks returns an error if a controller is alive, which would put finalizers back.
func (r *Release) noControllerWorks(ctx context.Context, config *rest.Config) error {
	client, err := typedcoordinationv1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a leases client: %w", err)
	}
	byName := metav1.ListOptions{FieldSelector: "metadata.name=" + LeaseName}
	leases, err := client.Leases(r.LeaseNamespace).List(ctx, byName)
	if err == nil && len(leases.Items) == 0 && r.LeaseLikely {
		r.LeaseNamespace = ""
		leases, err = client.Leases(r.LeaseNamespace).List(ctx, byName)
	}
	if err != nil {
		return fmt.Errorf("find out whether a weir controller is running, which would put its finalizer back: %w. "+
			"If you know that none is, go on with --force", err)
	}
	now := time.Now()
	for _, l := range leases.Items {
		held, ago := holds(&l, now)
		switch {
		case held && ago < -clocksDiffer:
			return fmt.Errorf("a weir controller may be running: the Lease %s/%s is held by %s, and says that it was "+
				"renewed %s from now. The clocks differ so much, or "+
				"no controller wrote it: whoever may write Leases in that namespace may have. If none runs there, name the "+
				"namespace of weir's own Lease with --leader-elect-namespace, "+
				"or delete that one; to go on regardless, add --force", l.Namespace, l.Name, *l.Spec.HolderIdentity,
				(-ago).Round(time.Second))
		case held:
			return fmt.Errorf("a weir controller is running: the Lease %s/%s is held by %s and was renewed %s ago. It would "+
				"put its finalizer back. "+
				"Scale its Deployment to 0, or stop the process, and try again once the Lease has run out (%d s); if none runs "+
				"there, name the namespace of weir's own Lease "+
				"with --leader-elect-namespace; to go on regardless, add --force",
				l.Namespace, l.Name, *l.Spec.HolderIdentity, max(ago, 0).Round(time.Second), *l.Spec.LeaseDurationSeconds)
		}
	}
	return nil
}

// clocksDiffer is how far ahead a controller's clock may be without being mentioned.
const clocksDiffer = 10 * time.Second

// holds reports whether a process holds a Lease now, and how long ago it was renewed; negative if
// that is in the future.
func holds(l *coordinationv1.Lease, now time.Time) (held bool, renewed time.Duration) {
	s := l.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return false, 0
	}
	ago := now.Sub(s.RenewTime.Time)
	return ago < time.Duration(*s.LeaseDurationSeconds)*time.Second, ago
}

// removeWebhooks deletes Weir's webhook configurations, and returns how many there were. They go
// before the finalizers: while they exist, an object gets the finalizer again at its next write.
func (r *Release) removeWebhooks(ctx context.Context, config *rest.Config) (n int, err error) {
	client, err := typedadmissionregistrationv1.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("make a client for webhook configurations: %w", err)
	}
	mutating, validating := client.MutatingWebhookConfigurations(), client.ValidatingWebhookConfigurations()
	for _, c := range []struct {
		kind   string
		read   func() error
		delete func(context.Context, string, metav1.DeleteOptions) error
	}{
		{"mutatingwebhookconfigurations.admissionregistration.k8s.io", func() error {
			_, err := mutating.Get(ctx, policies.WebhookConfigurations, metav1.GetOptions{})
			return err
		}, mutating.Delete},
		{"validatingwebhookconfigurations.admissionregistration.k8s.io", func() error {
			_, err := validating.Get(ctx, policies.WebhookConfigurations, metav1.GetOptions{})
			return err
		}, validating.Delete},
	} {
		what := c.kind + " " + policies.WebhookConfigurations
		there, err := r.remove(what, c.read, func() error {
			return unguarded(ctx, func() error {
				return c.delete(ctx, policies.WebhookConfigurations, metav1.DeleteOptions{})
			})
		})
		if err != nil {
			return n, fmt.Errorf("delete %s, which would put the finalizer back: %w", what, err)
		}
		n += there
	}
	return n, nil
}

// unguarded retries del while the API server still applies the guard of the webhook configurations,
// which is deleted already: API servers reload their policies once a second.
func unguarded(ctx context.Context, del func() error) (err error) {
	waited := wait.PollUntilContextTimeout(ctx, time.Second, guardedFor, true, func(context.Context) (bool, error) {
		err = del()
		return !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), policies.InProcessGuardName), nil
	})
	return cmp.Or(err, waited)
}

// guardedFor is how long an API server may take to notice that the guard is gone.
const guardedFor = 20 * time.Second

// removeInProcess deletes Weir's ValidatingAdmissionPolicies and bindings, which would go on
// refusing requests, and returns how many there were. They go first of all, because they guard the
// webhook configurations.
func (r *Release) removeInProcess(ctx context.Context, config *rest.Config) (n int, err error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("make a client for ValidatingAdmissionPolicies: %w", err)
	}
	for _, resource := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies"} {
		kind := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource))
		list, err := kind.List(ctx, metav1.ListOptions{LabelSelector: v1beta1.InProcessLabel})
		if apierrors.IsNotFound(err) { // the API server does not serve the kind
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("list %s: %w", resource, err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			there, err := r.remove(resource+".admissionregistration.k8s.io "+name, func() error { return nil },
				func() error { return kind.Delete(ctx, name, metav1.DeleteOptions{}) })
			if err != nil {
				return n, fmt.Errorf("delete %s %s, which would go on to refuse deletes: %w", resource, name, err)
			}
			n += there
		}
	}
	return n, nil
}

// remove deletes an object of Weir's, or in a dry run only reads it. It returns how many there
// were, 1 or 0.
func (r *Release) remove(what string, read, del func() error) (there int, err error) {
	err = read()
	if err == nil && !r.DryRun {
		err = del()
	}
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r.found(what)
	return 1, nil
}

func (r *Release) found(what string) {
	if r.Found != nil {
		r.Found(what)
	}
}

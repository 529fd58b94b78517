package beside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// DefaultStands is how long a canary must stand before Weir concludes that no other collector
// works. It is kept after that, and shows one that took longer. The built-in collector deletes it
// within a second, except in large clusters when it is busy.
const DefaultStands = 10 * time.Second

const (
	firstLook, mostLook = 50 * time.Millisecond, time.Second // between reads of a canary that is expected to go
	// calmLook is between two reads while Weir collects: a request each.
	calmLook = 10 * time.Second
	// failureRetry is how soon a failed request is repeated.
	failureRetry   = 5 * time.Second
	requestTimeout = 10 * time.Second
)

// Absent is the owner of every canary. An object with no other owner is garbage. The API server
// chooses uids at random, so no object ever has this one.
var Absent = metav1.OwnerReference{
	APIVersion: "v1", Kind: "ConfigMap", Name: "weir-never-existed", UID: v1beta1.CollectorCanaryOwner,
}

// Reporter reports to users what the canary shows.
type Reporter interface {
	Warn(canary graph.Ref, reason, text string)
	Tell(canary graph.Ref, reason, text string)
}

// Options are the options of New.
type Options struct {
	ConfigMaps typedcorev1.ConfigMapInterface // of Namespace
	Namespace  string
	Stands     time.Duration    // DefaultStands if 0
	Now        func() time.Time // the API server's clock
	// Once: Await gives up as soon as another collector is seen. It is for a process that a person has
	// started, and watches.
	Once bool
	// Collects says so of this Weir on the canary, and how long that must stand. Beside the
	// built-in collector it does not.
	Collects bool
	Reporter Reporter
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Canary is the ConfigMap, and what it has shown.
type Canary struct {
	Options
	metrics *metrics
	other   atomic.Bool // another collector was found, and no canary has stood since
}

// New returns a Canary. It sends nothing.
func New(o Options) *Canary {
	o.Stands = cmp.Or(o.Stands, DefaultStands)
	return &Canary{Options: o, metrics: newMetrics(o.Registry)}
}

// Waits reports whether Await waits for the end of another collector, which it has found.
func (c *Canary) Waits() bool { return c.other.Load() }

// Is reports whether an object is the canary, which Weir does not collect.
func (c *Canary) Is(ref graph.Ref) bool {
	return ref.Name == v1beta1.CollectorCanary && ref.Namespace == c.Namespace && ref.Kind == kinds.ConfigMaps
}

func (c *Canary) ref(uid types.UID) graph.Ref {
	return graph.Ref{Kind: kinds.ConfigMaps, Namespace: c.Namespace, Name: v1beta1.CollectorCanary, UID: uid}
}

// look reads a canary, and reports whether it stands: it is there, and does not terminate. One that
// is not garbage any more shows nothing, which is an error.
func (c *Canary) look(ctx context.Context, uid types.UID) (stands bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := c.ConfigMaps.Get(ctx, v1beta1.CollectorCanary, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && (live.UID != uid || live.DeletionTimestamp != nil):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("read the canary: %w", err)
	case !IsGarbage(live):
		return true, errChanged
	}
	return true, nil
}

// IsGarbage reports whether any garbage collector would delete an object: its only owner is the one
// that never existed.
func IsGarbage(cm *corev1.ConfigMap) bool {
	return equality.Semantic.DeepEqual(cm.OwnerReferences, []metav1.OwnerReference{Absent})
}

// planted is a canary that exists, and since when at least.
type planted struct {
	uid   types.UID
	since time.Time
}

// plant returns the canary. It creates a new one if there is none, or if the existing one says
// something else about who collects, which the webhook reads.
func (c *Canary) plant(ctx context.Context) (planted, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := c.ConfigMaps.Get(ctx, v1beta1.CollectorCanary, metav1.GetOptions{})
	labels := map[string]string{"app.kubernetes.io/name": "weir", "app.kubernetes.io/managed-by": "weir"}
	annotations := map[string]string{}
	if c.Collects {
		labels[v1beta1.CollectsLabel] = "true"
		annotations[v1beta1.CanaryTimeAnnotation] = c.Stands.String()
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return planted{}, fmt.Errorf("read the canary: %w", err)
	case live.DeletionTimestamp == nil && IsGarbage(live) &&
		live.Labels[v1beta1.CollectsLabel] == labels[v1beta1.CollectsLabel] &&
		live.Annotations[v1beta1.CanaryTimeAnnotation] == annotations[v1beta1.CanaryTimeAnnotation]:
		const rounding = time.Second // of creationTimestamp
		age := c.Now().Sub(live.CreationTimestamp.Time) - rounding
		return planted{live.UID, time.Now().Add(-max(0, age))}, nil
	default:
		err := c.ConfigMaps.Delete(ctx, v1beta1.CollectorCanary, *metav1.NewPreconditionDeleteOptions(string(live.UID)))
		if err != nil && !apierrors.IsNotFound(err) {
			return planted{}, fmt.Errorf("delete the canary, which was changed: %w", err)
		}
	}
	made, err := c.ConfigMaps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1beta1.CollectorCanary, OwnerReferences: []metav1.OwnerReference{Absent},
			Labels: labels, Annotations: annotations,
		},
		Data: map[string]string{"about": "The owner of this ConfigMap never existed. Weir leaves it alone; " +
			"any other garbage collector deletes it, which is how Weir finds out whether one works."},
	}, metav1.CreateOptions{})
	if err != nil {
		return planted{}, fmt.Errorf("create the canary: %w", err)
	}
	return planted{made.UID, time.Now()}, nil
}

// trial creates the canary, if there is none, and reports whether it stands for a time from then on.
// It reads the canary ever more rarely. One that has stood before, for another replica, need not
// stand again.
func (c *Canary) trial(ctx context.Context, within time.Duration) (p planted, stands bool, err error) {
	if p, err = c.plant(ctx); err != nil {
		return p, false, err
	}
	for every := firstLook; ; every = min(2*every, mostLook) {
		left := time.Until(p.since.Add(within))
		if left <= 0 {
			return p, true, nil
		}
		if err := await.Pause(ctx, min(every, left)); err != nil {
			return p, false, err
		}
		if stands, err = c.look(ctx, p.uid); err != nil || !stands {
			return p, false, err
		}
	}
}

// Await returns nil when no other collector works, because a canary has stood for long enough. It
// returns an error if ctx ends first, and ErrOther if another collector works and Once is set.
// Without Once it waits until none does.
func (c *Canary) Await(ctx context.Context) error {
	var said string
	for told := false; ; {
		p, alone, err := c.trial(ctx, c.Stands)
		again := failureRetry
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.metrics.untold(err != nil)
		switch {
		case err != nil:
			if said != err.Error() {
				said = err.Error()
				c.cannotTell(err)
			}
		case alone:
			c.other.Store(false)
			c.metrics.other.WithLabelValues("garbage").Set(0)
			c.Log.Info("no other garbage collector works: the canary stands")
			return nil
		default:
			if c.found(p.uid, !told); c.Once {
				return ErrOther
			}
			told, again = true, 6*c.Stands
		}
		if err := await.Pause(ctx, again); err != nil {
			return err
		}
	}
}

// Watch returns ErrOther when another collector begins to work, and nil when ctx ends. A canary
// that is deleted once may have been deleted by hand, or be missing in a restored backup; a
// collector deletes the next one, too.
func (c *Canary) Watch(ctx context.Context) error {
	for deleted := false; ; {
		p, stands, err := c.trial(ctx, c.Stands)
		again := calmLook
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			again = failureRetry
			c.Log.Info("cannot look at the canary, which tells whether another garbage collector works; will try again",
				"err", err.Error())
		case stands:
			deleted = false
		case deleted:
			c.found(p.uid, true)
			return ErrOther
		default:
			deleted, again = true, 0
		}
		if await.Pause(ctx, again) != nil {
			return nil
		}
	}
}

// ErrOther says that another garbage collector works.
var ErrOther = errors.New("another garbage collector works in this cluster, and in replace mode weir must be the " +
	"only one: " +
	"append -garbage-collector-controller,-namespace-controller to kube-controller-manager's --controllers " +
	"(* by default), or run weir with --mode companion; " +
	"--beside-builtin has weir collect beside it")

var errChanged = errors.New("the canary was changed while it was looked at")

func (c *Canary) found(uid types.UID, first bool) {
	c.other.Store(true)
	c.metrics.other.WithLabelValues("garbage").Set(1)
	if !first {
		return
	}
	text := fmt.Sprintf("%s (it deleted ConfigMap %s/%s, whose owner never existed)",
		ErrOther, c.Namespace, v1beta1.CollectorCanary)
	c.Log.Error(nil, text)
	c.Reporter.Warn(c.ref(uid), events.ReasonOtherCollector, text)
}

func (c *Canary) cannotTell(err error) {
	text := fmt.Sprintf("cannot tell whether another garbage collector works, and collects nothing until that is known: "+
		"%v (weir needs get, create and delete of ConfigMap %s/%s; --beside-builtin has weir not look)",
		err, c.Namespace, v1beta1.CollectorCanary)
	c.Log.Error(nil, text)
	c.Reporter.Warn(c.ref(""), events.ReasonOtherCollector, text)
}

package enforce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

const (
	// canaryEvery is so often that with the time that the API server waits for a webhook
	// (webhookTimeout) an outage is seen within 30 s.
	canaryEvery = 20 * time.Second
	// canaryTimeout is more than the API server waits for a webhook.
	canaryTimeout = (webhookTimeout + 3) * time.Second
	// canaryPatience is after what time it is looked why there is no answer yet.
	canaryPatience = 2 * time.Second
	// configurationsSettle is how long API servers may take to go by webhook configurations that
	// have changed.
	configurationsSettle = 10 * time.Second
	canaryRetry          = time.Second
	// canaryAgain is how soon it is tried again while something is wrong.
	canaryAgain = 5 * time.Second
)

// canary finds out whether the API server asks Weir: it sends a dry-run delete of an object of its
// own, which a webhook entry brings to Weir, and which must come back refused with the number that
// it was sent with.
type canary struct {
	leases  typedcoordinationv1.LeaseInterface
	knock   func(context.Context, called) door
	tell    func(is metav1.ConditionStatus, reason, message string) // of what is another than before
	metrics *metrics
	log     logr.Logger

	mu      sync.Mutex
	written writtenFor
	seen    reach
	of      *policies.Set // whose configurations had been written when that was seen
	reached bool          // once; what came after does not matter
	failing time.Time     // since when what is to be written could not be; zero: it could
	behind  reach         // what that means for policies of which nothing is written; empty: nothing yet
	changed await.Change  // when seen, of or behind change
	news    chan struct{} // what was written is another
}

// writtenFor is what was written into the webhook configurations.
type writtenFor struct {
	set   *policies.Set
	by    called
	since time.Time // when they were last changed
}

func newCanary(leases typedcoordinationv1.LeaseInterface, knock func(context.Context, called) door, tell func(metav1.ConditionStatus, string, string), m *metrics, log logr.Logger) *canary {
	return &canary{leases: leases, knock: knock, tell: tell, metrics: m, log: log, news: make(chan struct{}, 1)}
}

// configured is told by who writes the webhook configurations that they are as a set wants them,
// and whether they were not.
func (c *canary) configured(set *policies.Set, by called, changed bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	o := writtenFor{set: set, by: by, since: c.written.since}
	if changed || c.written.set == nil {
		o.since = time.Now()
	}
	fresh := changed || o.set != c.written.set
	c.written = o
	c.failing = time.Time{}
	was, seen := c.behind, c.seen
	if was != (reach{}) {
		c.behind = reach{}
		c.changed.Notify()
		c.show()
	}
	if fresh {
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
	c.mu.Unlock()
	if was != (reach{}) && seen.status != "" {
		c.tell(seen.status, seen.reason, seen.message)
	}
}

// unconfigured is told that they could not be written. Those that are there go on to be in force:
// for what came since, that is told after a while.
func (c *canary) unconfigured(err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	never := c.written.set == nil
	if c.failing.IsZero() {
		c.failing = time.Now()
	}
	late := !never && c.behind == (reach{}) && time.Since(c.failing) >= configurationsSettle
	if late {
		c.behind = reach{metav1.ConditionFalse, v1alpha1.ReasonNotConfigured, "the webhook configurations cannot be written, and the API server asks only about what policies said before: " + plainly(err.Error())}
		c.changed.Notify()
		c.show()
	}
	behind := c.behind
	c.mu.Unlock()
	if late {
		c.tell(behind.status, behind.reason, behind.message)
	}
	if never {
		c.see(reach{metav1.ConditionFalse, v1alpha1.ReasonNotConfigured, "no webhook configuration has been written, and nothing is judged: " + plainly(err.Error())}, nil)
	}
}

// now is what is known about policies in force, and a channel that is closed when that changes.
func (c *canary) now(inForce *policies.Set) (reach, <-chan struct{}) {
	if c == nil {
		return notConfigured, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known(inForce), c.changed.Next()
}

// known is what was seen, where it was seen of the policies in force: what is new is asked about
// first. For no policies in particular, nothing has been written yet.
func (c *canary) known(inForce *policies.Set) reach {
	if c.of != nil && c.of != inForce {
		return c.behind
	}
	return c.seen
}

// show has the metric say what is known.
func (c *canary) show() {
	c.metrics.reachable.Reset()
	for _, r := range []reach{c.seen, c.behind} {
		switch r.status {
		case metav1.ConditionTrue:
			c.metrics.reachable.WithLabelValues(r.reason).Set(1)
		case metav1.ConditionFalse:
			c.metrics.reachable.WithLabelValues(r.reason).Set(0)
		}
	}
}

// wasReached is nil once the API server has asked the webhook and was answered, for good; before
// that it says what was seen last.
func (c *canary) wasReached() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.reached:
		return nil
	case c.seen.message != "":
		return errors.New(c.seen.message)
	}
	return errNotTried
}

// errNotTried is also of configurations that API servers may not have read yet
// (configurationsSettle).
var errNotTried = errors.New("the API server has not asked weir's webhook yet: the webhook configurations are being written, or were a moment ago")

func (c *canary) see(r reach, of *policies.Set) {
	c.mu.Lock()
	was := c.seen
	c.reached = c.reached || r.status == metav1.ConditionTrue
	same := r == was && c.of == of
	if !same {
		c.seen, c.of = r, of
		c.changed.Notify()
	}
	c.show()
	c.mu.Unlock()
	if r.status != was.status || r.reason != was.reason {
		c.log.Info("checked whether the API server asks the webhook", "enforced", string(r.status), "reason", r.reason, "message", r.message)
		c.tell(r.status, r.reason, r.message)
	}
}

// run tries until ctx ends.
func (c *canary) run(ctx context.Context) {
	for {
		pause := canaryEvery
		c.mu.Lock()
		o := c.written
		c.mu.Unlock()
		if o.set != nil {
			r := c.try(ctx, o)
			if ctx.Err() != nil {
				return
			}
			if r.reason == v1alpha1.ReasonNotAsked && time.Since(o.since) < configurationsSettle {
				pause = canaryRetry
			} else {
				c.see(r, o.set)
				if r.status != metav1.ConditionTrue {
					pause = canaryAgain
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.news:
		case <-time.After(pause):
		}
	}
}

// Asked deletes the canary's Lease in a dry run, as a leader does, and tells whether the API server
// asked the webhook, and was answered. It makes no Lease: a leader does.
func Asked(ctx context.Context, leases typedcoordinationv1.LeaseInterface) (is metav1.ConditionStatus, message string) {
	number := newNumber()
	err := leases.Delete(ctx, policies.Canary, canaryDelete(number))
	r := reachOf(err, policies.CanaryAnswer(number), notKnocked)
	switch {
	case apierrors.IsNotFound(err):
		r.message += ": the controller makes it when it leads: see that one does"
	case r.reason == v1alpha1.ReasonNotAsked:
		r.message += ", that there is a ValidatingWebhookConfiguration weir, which the controller writes, and that the Lease has the label " + v1alpha1.CanaryLabel
	}
	return r.status, r.message
}

// newNumber tells an answer to one request from any other.
func newNumber() int64 { return 1 + rand.Int64N(math.MaxInt32-1) }

func canaryDelete(number int64) metav1.DeleteOptions {
	return metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, GracePeriodSeconds: &number}
}

// try sends the canary once.
func (c *canary) try(ctx context.Context, o writtenFor) reach {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	number := newNumber()
	sent := make(chan error, 1)
	go func() { sent <- c.send(ctx, number) }()
	found := notKnocked
	var err error
	select {
	case err = <-sent:
	case <-time.After(canaryPatience):
		found = c.knock(ctx, o.by)
		err = <-sent
	}
	return reachOf(err, policies.CanaryAnswer(number), found)
}

// send deletes the Lease in a dry run, once there is one that comes to Weir.
func (c *canary) send(ctx context.Context, number int64) error {
	dryRun := canaryDelete(number)
	err := c.leases.Delete(ctx, policies.Canary, dryRun)
	switch {
	case apierrors.IsNotFound(err):
		if err := c.make(ctx); err != nil {
			return err
		}
	case err == nil: // perhaps a client has taken the label off
		if err := c.label(ctx); err != nil {
			return err
		}
	default:
		return err
	}
	return c.leases.Delete(ctx, policies.Canary, dryRun)
}

func (c *canary) make(ctx context.Context) error {
	_, err := c.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: policies.Canary, Labels: map[string]string{
		v1alpha1.CanaryLabel: "true", "app.kubernetes.io/managed-by": "weir",
	}}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Lease %s: %w", policies.Canary, err)
	}
	return nil
}

func (c *canary) label(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, v1alpha1.CanaryLabel)
	if _, err := c.leases.Patch(ctx, policies.Canary, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label Lease %s: %w", policies.Canary, err)
	}
	return nil
}

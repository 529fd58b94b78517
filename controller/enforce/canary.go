package enforce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1ac "k8s.io/client-go/applyconfigurations/coordination/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// canaryEvery is how often the canary is sent. With webhookTimeout, an outage is seen within 30 s.
	canaryEvery = 20 * time.Second
	// canaryTimeout is more than the API server waits for a webhook.
	canaryTimeout = (webhookTimeout + 3) * time.Second
	// configurationsSettle is how long API servers may take to read changed webhook configurations.
	configurationsSettle = 10 * time.Second
	canaryRetry          = time.Second
	// canaryAgain is how soon the canary is sent again while something is wrong.
	canaryAgain = 5 * time.Second
)

// canary finds out whether the API server calls Weir. It sends a dry-run delete of its own Lease,
// which has a webhook of its own, and must be refused with the number that was sent.
type canary struct {
	namespace string
	leases    typedcoordinationv1.LeaseInterface // of namespace
	board     *board
	tell      func(is metav1.ConditionStatus, reason, message string) // called when the result changes
	metrics   *metrics
	log       logr.Logger
	news      chan struct{} // has an element when the configurations have changed
}

func newCanary(namespace string, leases typedcoordinationv1.LeasesGetter, b *board,
	tell func(metav1.ConditionStatus, string, string), m *metrics, log logr.Logger) *canary {
	return &canary{namespace: namespace, leases: leases.Leases(namespace), board: b, tell: tell, metrics: m, log: log,
		news: make(chan struct{}, 1)}
}

// configured is called when the webhook configurations are as a set needs them; changed is true if
// they had to be written.
func (c *canary) configured(set *policies.Set, changed bool) {
	was := c.board.update(func(s *snapshot) {
		if changed || s.asked.set == nil {
			s.asked.since = time.Now()
		}
		s.asked.set, s.asked.failing = set, time.Time{}
	}).asked
	if changed || was.set != set || !was.failing.IsZero() {
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
}

// unconfigured is called when they could not be written. The existing ones stay in force, which
// after a while is reported.
func (c *canary) unconfigured(err error) {
	var now asked
	c.board.update(func(s *snapshot) {
		if s.asked.failing.IsZero() {
			s.asked.failing = time.Now()
		}
		now = s.asked
	})
	says := "no webhook configuration has been written, and Weir judges nothing: "
	if now.set != nil {
		says = "the webhook configurations cannot be written, so the API server still asks by what policies said before: "
	}
	if now.set == nil || now.behind() {
		c.see(reach{metav1.ConditionFalse, v1beta1.ReasonNotConfigured, says + plainly(err.Error())}, nil)
	}
}

// behind reports whether configurations cannot be written for some time.
func (a *asked) behind() bool {
	return !a.failing.IsZero() && time.Since(a.failing) >= configurationsSettle
}

// about returns what is known about policies in force: what was seen with their configurations, or
// when none could be written.
func (a *asked) about(inForce *policies.Set) reach {
	if a.of != nil && a.of != inForce {
		return reach{}
	}
	return a.seen
}

// wasReached returns nil once the API server has called the webhook and got an answer, for good.
// Before that it returns what was seen last.
func (c *canary) wasReached() error {
	now, _ := c.board.read()
	switch {
	case now.asked.reached:
		return nil
	case now.asked.seen.message != "":
		return errors.New(now.asked.seen.message)
	}
	return errNotTried
}

// errNotTried is also the error while API servers may not have read the configurations yet
// (configurationsSettle).
var errNotTried = errors.New("the API server has not asked weir's webhook yet: the webhook configurations are being " +
	"written, or were a moment ago")

func (c *canary) see(r reach, of *policies.Set) {
	was := c.board.update(func(s *snapshot) {
		s.asked.reached = s.asked.reached || r.status == metav1.ConditionTrue
		s.asked.seen, s.asked.of = r, of
	}).asked
	c.metrics.reachable.Reset()
	switch r.status {
	case metav1.ConditionTrue:
		c.metrics.reachable.WithLabelValues(r.reason).Set(1)
	case metav1.ConditionFalse:
		c.metrics.reachable.WithLabelValues(r.reason).Set(0)
	}
	if r.status != was.seen.status || r.reason != was.seen.reason {
		c.log.Info("checked whether the API server asks the webhook", "enforced", string(r.status), "reason", r.reason,
			"message", r.message)
		c.tell(r.status, r.reason, r.message)
	}
}

// run sends the canary until ctx ends.
func (c *canary) run(ctx context.Context) {
	for {
		pause := canaryEvery
		now, _ := c.board.read()
		if o := now.asked; o.set != nil && !o.behind() {
			r := c.try(ctx)
			if ctx.Err() != nil {
				return
			}
			if r.reason == v1beta1.ReasonNotAsked && time.Since(o.since) < configurationsSettle {
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

// Asked deletes the canary's Lease in a dry run, as a leader does, and returns whether the API
// server called the webhook and got an answer. It does not create the Lease, which a leader does.
func Asked(ctx context.Context, leases typedcoordinationv1.LeaseInterface) (is metav1.ConditionStatus, message string) {
	number := newNumber()
	err := leases.Delete(ctx, policies.Canary, canaryDelete(number))
	r := reachOf(err, policies.CanaryAnswer(number))
	switch {
	case apierrors.IsNotFound(err):
		r.message += ": the controller makes it when it leads: see that one does"
	case r.reason == v1beta1.ReasonNotAsked:
		r.message += ", that there is a ValidatingWebhookConfiguration weir, which the controller writes, and that the " +
			"Lease has the label " + v1beta1.CanaryLabel
	}
	return r.status, r.message
}

// newNumber returns a number that tells the answer to one request from any other.
func newNumber() int64 { return 1 + rand.Int64N(math.MaxInt32-1) }

func canaryDelete(number int64) metav1.DeleteOptions {
	return metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, GracePeriodSeconds: &number}
}

// try sends the canary once.
func (c *canary) try(ctx context.Context) reach {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	number := newNumber()
	return reachOf(c.send(ctx, number), policies.CanaryAnswer(number))
}

// send deletes the Lease in a dry run. If that is not refused, the Lease may not exist, or a client
// may have removed its label: it is applied, and deleted again.
func (c *canary) send(ctx context.Context, number int64) error {
	dryRun := canaryDelete(number)
	if err := c.leases.Delete(ctx, policies.Canary, dryRun); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	lease := coordinationv1ac.Lease(policies.Canary, c.namespace).
		WithLabels(map[string]string{v1beta1.CanaryLabel: "true", "app.kubernetes.io/managed-by": "weir"})
	if _, err := c.leases.Apply(ctx, lease, metav1.ApplyOptions{FieldManager: "weir", Force: true}); err != nil {
		return fmt.Errorf("apply Lease %s: %w", policies.Canary, err)
	}
	return c.leases.Delete(ctx, policies.Canary, dryRun)
}

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// armer holds back deletions that would not go as a policy says, because their object does not
// carry the finalizer, or has not carried it for long enough.
//
// A finalizer that is added while a DELETE is under way is lost with the object (RB 6.24, 6.25):
// the API server has already decided that there is none. So the DELETE is refused with 429, and so
// is every other that may have begun before the finalizer was there. Clients retry by themselves,
// and the finalizer then holds.
type armer struct {
	writer  *finalizers.Writer
	lister  *finalizers.Lister
	state   *live.State
	window  time.Duration
	metrics *metrics
	log     *sayer
	lists   *semaphore.Weighted // bounds the lists that cascades read in pages
}

func newArmer(o Options, m *metrics) (*armer, error) {
	writer, err := finalizers.New(o.Config, o.Policies.Now)
	if err != nil {
		return nil, err
	}
	lister, err := finalizers.NewLister(o.Config)
	if err != nil {
		return nil, err
	}
	return &armer{
		writer: writer, lister: lister, state: o.Policies, window: o.ArmingWindow, metrics: m, log: newSayer(o.Log),
		lists: semaphore.NewWeighted(mostLists),
	}, nil
}

// hold returns what becomes of a DELETE that is allowed. It may have to wait until the finalizer
// holds; with a time to wait, the decision is a refusal.
func (a *armer) hold(
	ctx context.Context, q *policies.Question, d policies.Decision,
) (policies.Decision, time.Duration, error) {
	if !d.Enforced || q.DryRun {
		return d, 0, nil
	}
	if d.Arm {
		return a.arm(ctx, q, d)
	}
	wait := a.fresh(q)
	if wait > 0 {
		a.metrics.armed.WithLabelValues("waiting").Inc()
		d = held(q, d, wait)
	}
	return d, wait, nil
}

// windowOf returns for how long after the finalizer was added a DELETE is held back.
func (a *armer) windowOf(q *policies.Question) time.Duration {
	if q.Name == "" { // a deletecollection may take 60 s, where others take 34 (RB 6.18)
		return a.window * 61 / 35
	}
	return a.window
}

// fresh returns how long the finalizer of an object has yet to wait; 0 if it holds.
func (a *armer) fresh(q *policies.Question) time.Duration {
	since, armed := policies.ArmedSince(q.OldObject, q.Now)
	if !armed {
		return 0
	}
	return max(0, a.windowOf(q)-since)
}

// arm adds the finalizer to the object of a DELETE, as the object is and as the policies judge it
// then.
func (a *armer) arm(
	ctx context.Context, q *policies.Question, d policies.Decision,
) (policies.Decision, time.Duration, error) {
	result, err := a.addFinalizer(ctx, q, &d)
	a.metrics.armed.WithLabelValues(string(result)).Inc()
	if finalizers.CannotCarry(err) {
		return cannotCarry(q, d, err), 0, nil
	}
	if err != nil {
		return d, 0, fmt.Errorf("hold %s back until it can be deleted as DeletionPolicy %q says: %w",
			q.Resource.GroupResource(), d.Wanted.By, err)
	}
	if !d.Allowed {
		return d, 0, nil
	}
	a.log.say("held a deletion", "resource", q.Resource.GroupResource().String(), "namespace", q.Namespace,
		"name", finalizers.MetaOf(q.OldObject).Name, "user", q.User.Name, "propagation", d.Propagation,
		"by", d.Wanted.By, "finalizer", result)
	wait := a.windowOf(q)
	return held(q, d, wait), wait, nil
}

// addFinalizer reads the object, judges its DELETE again, and adds the finalizer if that says so.
// It repeats that if the object changes meanwhile. What the review said is only the reason to look.
func (a *armer) addFinalizer(
	ctx context.Context, q *policies.Question, d *policies.Decision,
) (finalizers.Result, error) {
	for range addTries {
		set := a.state.Set()
		_, full := set.AddsFinalizer(q.Resource.GroupResource())
		live, m, err := confirm(ctx, a.lister, q, full)
		if err != nil {
			return finalizers.Failed, err
		}
		if m == nil || m.DeletionTimestamp != nil {
			return finalizers.Gone, nil
		}
		again := set.Decide(live)
		if !again.Allowed {
			*d = again
			return finalizers.Changed, nil
		}
		switch { // the client's next request is judged as the object is then
		case !again.Enforced:
			return finalizers.Changed, nil
		case !again.Arm:
			return finalizers.Already, nil
		}
		*d = again
		result, err := a.writer.Put(ctx, q.Resource, m, again.Wanted)
		if err != nil || result != finalizers.Changed {
			return result, err
		}
	}
	return finalizers.Failed, fmt.Errorf("it has changed %d times while the finalizer was being added", addTries)
}

// addTries is how often an object is read that changes while the finalizer is being added.
const addTries = 5

// held returns the refusal of a DELETE that has to wait.
func held(q *policies.Question, d policies.Decision, wait time.Duration) policies.Decision {
	d.Allowed, d.Code, d.Reason = false, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	how := fmt.Sprintf("recorded, and then deleted (DeletionPolicy %q)", d.Wanted.By)
	switch {
	case d.By != "":
		how = fmt.Sprintf("deleted with propagation %s (DeletionPolicy %q)", d.Propagation, d.By)
	case d.BrakedBy != "":
		how = fmt.Sprintf("deleted, and held if too much would also be deleted (DeletionPolicy %q)", d.BrakedBy)
	}
	d.Message = fmt.Sprintf("%s %q is %s. Weir has just added the finalizer %s that this needs: "+
		"try again in %s. kubectl, and other clients with client-go, do so by themselves",
		q.Resource.GroupResource(), finalizers.MetaOf(q.OldObject).Name, how, v1beta1.Finalizer,
		(wait + time.Second - 1).Truncate(time.Second))
	return d
}

// cannotCarry returns the refusal of a DELETE whose object cannot get the finalizer. A user who may
// edit an object can make it so, so no failurePolicy may let the request pass for that.
func cannotCarry(q *policies.Question, d policies.Decision, why error) policies.Decision {
	d.Allowed, d.Code, d.Reason = false, http.StatusForbidden, metav1.StatusReasonForbidden
	d.Message = fmt.Sprintf("%s %q cannot be deleted as DeletionPolicy %q says: it needs the finalizer %s for that, "+
		"and the API server does not store the object with it: %.1000s. "+
		"Make the object smaller, or correct what is invalid in it, then delete it",
		q.Resource.GroupResource(), finalizers.MetaOf(q.OldObject).Name, d.Wanted.By, v1beta1.Finalizer, why)
	return d
}

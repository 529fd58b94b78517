package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// mostRounds is how often a decision may need to know more. Each answer brings the next question at most once: who may
// update every finalizer is asked before who may update one.
const mostRounds = 4

// namespaces are in themselves, as the API server has it; a policy selects them by their own labels.
var namespaces = schema.GroupResource{Resource: "namespaces"}

// judge answers questions with what the cluster knows.
type judge struct {
	policies *live.State
	facts    policies.Facts
	access   *access
	arm      *armer
	metrics  *metrics
	log      logr.Logger
}

func (j *judge) answer(ctx context.Context, asked policies.Webhook, q policies.Question) answer {
	q.Asked, q.Facts, q.Now = asked, j.facts, time.Now()
	if q.Namespace != "" && q.Resource.GroupResource() != namespaces {
		ns, err := j.policies.NamespaceNow(ctx, q.Namespace)
		if err != nil {
			return answer{err: err}
		}
		q.NamespaceObject = ns
	}
	d, err := j.decide(ctx, &q)
	if err != nil {
		return answer{err: err}
	}
	if len(d.Errors) > 0 {
		j.log.Info("policies could not be judged", "errors", fmt.Sprint(d.Errors), "resource", q.Resource.GroupResource().String(),
			"namespace", q.Namespace, "name", q.Name)
	}
	if !d.Allowed {
		return refused(d, 0)
	}
	if wait, why, err := j.arm.hold(ctx, &q, d); err != nil {
		return answer{err: err}
	} else if wait > 0 {
		d.Code, d.Reason, d.Message = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, why
		return refused(d, wait)
	}
	return allowed(d)
}

// decide asks the set until it needs to know nothing more.
func (j *judge) decide(ctx context.Context, q *policies.Question) (policies.Decision, error) {
	set := j.policies.Set()
	for range mostRounds {
		d := set.Decide(*q)
		if len(d.Needs) == 0 {
			return d, nil
		}
		answers, err := j.access.ask(ctx, q.User, d.Needs)
		if err != nil {
			return policies.Decision{}, err
		}
		if q.Answers == nil {
			q.Answers = answers
			continue
		}
		for k, v := range answers {
			q.Answers[k] = v
		}
	}
	return policies.Decision{}, fmt.Errorf("judge %s of %s %s: permissions were asked for %d times and still are", q.Operation, q.Resource.GroupResource(), q.Name, mostRounds)
}

// refused says no. The API server makes a Retry-After header of the seconds, and clients come again by themselves (RB 6.15).
func refused(d policies.Decision, retryAfter time.Duration) answer {
	status := &metav1.Status{Status: metav1.StatusFailure, Code: d.Code, Reason: d.Reason, Message: d.Message}
	result := "refused"
	if retryAfter > 0 {
		result = "later"
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(max(1, (retryAfter+time.Second-1)/time.Second))}
	}
	return answer{result: result, response: &admissionv1.AdmissionResponse{
		Result: status, Warnings: d.Warnings, AuditAnnotations: d.Audit,
	}}
}

func allowed(d policies.Decision) answer {
	out := &admissionv1.AdmissionResponse{Allowed: true, Warnings: d.Warnings, AuditAnnotations: d.Audit}
	a := answer{result: "allowed", response: out}
	if len(d.Patch) > 0 {
		patch, err := json.Marshal(d.Patch)
		if err != nil {
			return answer{err: fmt.Errorf("encode the patch: %w", err)}
		}
		a.result = "patched"
		out.Patch, out.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	return a
}

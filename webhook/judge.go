package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// mostRounds is how often a decision may ask for more. Each answer brings at most one further
// question: whether the user may update every finalizer is asked before single ones.
const mostRounds = 4

// mostAccess is how many permissions one request may depend on: a user can write ten thousand
// references into an object.
const mostAccess = 64

// mostDisclosed is how many permissions are looked up only for the text of a refusal: a few kinds
// for each of a few policies.
const mostDisclosed = 64

// disclosureTime bounds how long a refusal waits for them.
const disclosureTime = time.Second

// namespaces are themselves in a namespace, as the API server has it; a policy selects them by
// their own labels.
var namespaces = schema.GroupResource{Resource: "namespaces"}

var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// judge answers questions with what the cluster knows.
type judge struct {
	policies *live.State
	facts    policies.Facts
	access   *access
	// collector is asked where a decision depends on who collects.
	collector *collector
	arm       *armer
	pace      flowcontrol.RateLimiter // of requests to the API server
	metrics   *metrics
	blames    *blamer
	log       *sayer
	sealed    func(text, seal string) bool
	seal      func(text string) (string, bool)
}

func (j *judge) answer(ctx context.Context, asked policies.Webhook, q policies.Question) answer {
	a := j.judge(ctx, asked, q)
	if errors.Is(a.err, errBusy) && mayRefuse(j.policies.Set().Refuses, asked, q.Part) {
		return tooBusy(asked) // users can cause it, so it is not left to the failurePolicy
	}
	return a
}

func (j *judge) judge(ctx context.Context, asked policies.Webhook, q policies.Question) answer {
	q.Asked, q.Facts, q.Now, q.Sealed, q.Seal = asked, j.facts, j.policies.Now(), j.sealed, j.seal
	if q.Namespace != "" && q.Resource.GroupResource() != namespaces {
		ns, err := j.namespace(ctx, q.Namespace)
		if err != nil {
			return answer{err: err}
		}
		q.NamespaceObject = ns
	}
	evicts := asked == policies.WebhookDelete && q.Evicts()
	if evicts {
		switch there, err := j.evicted(ctx, &q); {
		case err != nil:
			return answer{err: err}
		case !there:
			return allowed(policies.Decision{})
		}
	}
	if err := j.confirmHolder(ctx, &q); err != nil {
		return answer{err: err}
	}
	decide := j.decide
	if asked == policies.WebhookCascade {
		decide = j.cascade
	}
	d, err := decide(ctx, &q)
	if err != nil {
		return answer{err: err}
	}
	if len(d.Errors) > 0 {
		j.metrics.failed(d.Errors)
		j.blames.failed(d.Errors)
		j.log.say("policies could not be judged", "errors", fmt.Sprint(d.Errors),
			"resource", q.Resource.GroupResource().String(), "namespace", q.Namespace, "name", q.Name)
	}
	if !d.Allowed && evicts {
		d = evicting(&q, d)
	}
	if s := j.summary(asked, &q, d); s != "" {
		d.Warnings = append(d.Warnings, s)
	}
	if !d.Allowed {
		return refused(d, 0).toCollectors(asked, d)
	}
	d, wait, err := j.arm.hold(ctx, &q, d)
	if err != nil {
		return answer{err: err}
	}
	if !d.Allowed {
		return refused(d, wait)
	}
	return allowed(d)
}

// namespace returns a Namespace, nil if there is none. One that was not seen yet is read, at the
// pace of all requests: a review can name any.
func (j *judge) namespace(ctx context.Context, name string) (map[string]any, error) {
	if ns := j.policies.Namespace(name); ns != nil {
		return ns, nil
	}
	if err := j.pace.Wait(ctx); err != nil {
		return nil, err
	}
	return j.policies.NamespaceNow(ctx, name)
}

// summary returns what would be deleted with an object whose delete is a dry run, or refused; empty
// where that is not said. The API server passes on a warning once, however many webhooks give it.
func (j *judge) summary(asked policies.Webhook, q *policies.Question, d policies.Decision) string {
	if asked != policies.WebhookDelete || d.Allowed && !q.DryRun || strings.Contains(d.Message, "would also be deleted") {
		return ""
	}
	return j.policies.Set().Summary(*q)
}

// confirmHolder confirms a Namespace or a definition that is to be deleted: its contents are found
// by its name, which any user can guess, and are disclosed in a refusal.
func (j *judge) confirmHolder(ctx context.Context, q *policies.Question) error {
	gr := q.Resource.GroupResource()
	if q.Operation != policies.Delete || q.Subresource != "" || gr != namespaces && gr != definitions {
		return nil
	}
	if gr == namespaces {
		seen, said := finalizers.MetaOf(j.policies.Namespace(q.Name)), finalizers.MetaOf(q.OldObject)
		if seen.UID != "" && seen.UID == said.UID && seen.Name == said.Name {
			return nil
		}
	}
	live, m, err := confirm(ctx, j.arm.lister, q, true)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("judge the delete of %s %q: it is not there, or has another uid than the request says",
			gr, finalizers.MetaOf(q.OldObject).Name)
	}
	*q = live
	return nil
}

// decide asks the set until it needs to know nothing more.
func (j *judge) decide(ctx context.Context, q *policies.Question) (policies.Decision, error) {
	set, asked := j.policies.Set(), false
	for range mostRounds {
		d := set.Decide(*q)
		if d.AsksCollector && !asked {
			asked = true
			if q.Collector = j.collector.who(ctx); q.Collector != policies.CollectorUnknown {
				d = set.Decide(*q)
			}
		}
		if len(d.Owners) > 0 {
			owners, err := j.owners(ctx, d.Owners)
			if err != nil {
				return policies.Decision{}, err
			}
			if q.Owners = owners; len(d.Needs) == 0 {
				continue
			}
		}
		if len(d.Needs) == 0 {
			return j.disclosed(ctx, set, q, d), nil
		}
		switch n := len(q.Answers) + len(d.Needs); {
		case n <= mostAccess:
		case d.Binding: // users can cause it, so it is not left to the failurePolicy
			return policies.Decision{
				Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: tooMuchAccess(n),
			}, nil
		case len(d.Owners) > 0:
			continue // they are known now
		default: // only policies on trial need so many
			d = j.disclosed(ctx, set, q, d)
			d.Needs, d.Warnings = nil, append(d.Warnings, tooMuchAccess(n))
			return d, nil
		}
		answers, err := j.access.ask(ctx, q.User, d.Needs)
		if err != nil {
			return policies.Decision{}, err
		}
		maps.Copy(answers, q.Answers)
		q.Answers = answers
	}
	return policies.Decision{}, fmt.Errorf("judge %s of %s %s: permissions were asked for %d times and still are",
		q.Operation, q.Resource.GroupResource(), q.Name, mostRounds)
}

// disclosed returns the decision with what the user may be told. If that cannot be found out, the
// text says less, and the decision is the same.
func (j *judge) disclosed(
	ctx context.Context, set *policies.Set, q *policies.Question, d policies.Decision,
) policies.Decision {
	answers := j.mayBeDisclosed(ctx, q, d)
	if answers == nil {
		return d
	}
	maps.Copy(answers, q.Answers)
	again := *q
	again.Answers = answers
	return set.Decide(again)
}

// mayBeDisclosed looks up the permissions on which the text of a decision depends; nil if there are
// none, or they cannot be found out.
func (j *judge) mayBeDisclosed(
	ctx context.Context, q *policies.Question, d policies.Decision,
) map[policies.Access]policies.Answer {
	if len(d.Discloses) == 0 || len(d.Discloses) > mostDisclosed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, disclosureTime)
	defer cancel()
	answers, err := j.access.ask(ctx, q.User, d.Discloses)
	if err != nil {
		j.log.say("could not find out what may be told to a user", "user", q.User.Name, "err", err.Error())
		return nil
	}
	return answers
}

// tooMuchAccess says why so many permissions are not looked up.
func tooMuchAccess(n int) string {
	return fmt.Sprintf("what policies say of this request depends on %d permissions of yours, and at most %d are "+
		"looked up for one request: change fewer owner references at a time", n, mostAccess)
}

// refused returns a refusal. The API server makes a Retry-After header of the seconds, by which
// clients retry (RB 6.15).
func refused(d policies.Decision, retryAfter time.Duration) answer {
	status := &metav1.Status{Status: metav1.StatusFailure, Code: d.Code, Reason: d.Reason, Message: d.Message}
	result := "refused"
	if d.Unjudged {
		result = "error"
	}
	if retryAfter > 0 {
		result = "throttled"
		seconds := max(1, (retryAfter+time.Second-1)/time.Second)
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	}
	return answer{result: result, response: &admissionv1.AdmissionResponse{
		Result: status, Warnings: d.Warnings, AuditAnnotations: d.Audit,
	}}
}

// toCollectors says in a refusal, for Weir's own collector, that a policy protects the object.
func (a answer) toCollectors(asked policies.Webhook, d policies.Decision) answer {
	if !d.Unjudged && (asked == policies.WebhookGuard || asked == policies.WebhookCascade) {
		a.response.Result.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: v1beta1.CauseProtected, Message: d.Audit[policies.AuditRefused]},
		}}
	}
	return a
}

func allowed(d policies.Decision) answer {
	out := &admissionv1.AdmissionResponse{Allowed: true, Warnings: d.Warnings, AuditAnnotations: d.Audit}
	a := answer{result: "allowed", response: out}
	if len(d.Errors) > 0 {
		a.result = "error"
	}
	if len(d.Patch) > 0 {
		patch, err := json.Marshal(d.Patch)
		if err != nil {
			return answer{err: fmt.Errorf("encode the patch: %w", err)}
		}
		if len(d.Errors) == 0 {
			a.result = "patched"
		}
		out.Patch, out.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	return a
}

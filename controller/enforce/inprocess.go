package enforce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	typedadmissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// mostInProcess is how many policies the API server judges by itself. It parses the selectors of
	// each at every write that the policy's rules name.
	mostInProcess = 16
	// mostName is how long the name of an object may be.
	mostName = 253
)

// inProcessOldest is the first version of Kubernetes that serves ValidatingAdmissionPolicies.
var inProcessOldest = kubeversion.MajorMinor(1, 30)

// inProcess writes what the API server can judge of policies by itself as
// ValidatingAdmissionPolicies, which hold while Weir is away.
//
// The objects of a policy that is gone are deleted at once. Others are changed or deleted only
// after the webhook configurations were written for the same policies, and the API server has
// called the webhook. So there is no moment in which neither judges.
type inProcess struct {
	client    typedadmissionregistrationv1.AdmissionregistrationV1Interface
	version   discovery.ServerVersionInterface
	leases    typedcoordinationv1.LeaseInterface // of namespace
	namespace string                             // that of the canary
	owners    func(context.Context) ([]metav1.OwnerReference, error)
	policies  *live.State
	board     *board
	off       bool
	// overlap is for how long both judge before fewer requests come to the webhook.
	overlap time.Duration
	log     logr.Logger

	since time.Time // when it was first proven for the policies in force
}

// judged is what is known of what the API server judges by itself.
type judged struct {
	of   *policies.Set
	says map[policies.PolicyKey]reach
	// waits: existing objects are to be changed once the API server has called the webhook.
	waits bool
	// proven: the API server judges by all that was written.
	proven bool
	// alone are the webhooks that are no longer called for a policy; nil: all are called.
	alone map[policies.PolicyKey][]policies.Webhook
}

func (p *inProcess) run(ctx context.Context) {
	failing := false
	for {
		changed := p.policies.Changed()
		now, news := p.board.read()
		set := p.policies.Set()
		is, err := p.keep(ctx, set, now.asked.of == set)
		if ctx.Err() != nil {
			return
		}
		p.handOver(&is, now.judged)
		p.board.update(func(s *snapshot) { s.judged = is })
		if err != nil && !failing {
			p.log.Info("cannot bring ValidatingAdmissionPolicies up to date, will try again", "err", err.Error())
		}
		failing = err != nil
		pause := configureEvery
		if failing || !is.proven {
			pause = canaryRetry
		}
		if !is.waits {
			news = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-news:
			_ = await.Pause(ctx, canaryRetry) // other parts publish news, too
		case <-time.After(pause):
		}
	}
}

// handOver lets fewer requests come to the webhook once both have judged for the overlap.
func (p *inProcess) handOver(is *judged, was judged) {
	if !is.proven || is.waits {
		is.alone = nil
		return
	}
	if !was.proven || was.waits || was.of != is.of {
		p.since = time.Now()
	}
	if time.Since(p.since) < p.overlap {
		is.alone = nil
	}
}

// saidOf returns what is said of each policy before anything is compiled, and the names of objects
// that may exist for a policy.
func saidOf(set *policies.Set) (says map[policies.PolicyKey]reach, known map[string]bool) {
	says, known = map[policies.PolicyKey]reach{}, map[string]bool{}
	for _, s := range set.Statuses() {
		known[inProcessName(s.Policy)] = true
		says[s.Policy] = reach{}
		if !s.Ready {
			says[s.Policy] = reach{metav1.ConditionFalse, v1beta1.ReasonNotValid, notInForce}
		}
	}
	return says, known
}

// keep brings the objects up to date, and finds out whether the API server judges by them. free:
// the webhook judges the policies of the set.
func (p *inProcess) keep(ctx context.Context, set *policies.Set, free bool) (is judged, err error) {
	is.of, is.alone = set, map[policies.PolicyKey][]policies.Webhook{}
	var known map[string]bool
	is.says, known = saidOf(set)
	v, none, err := p.serves()
	if err != nil {
		return is.failed(err)
	}
	want := p.compile(set, v, none, is.says)
	have, err := readInProcess(ctx, p.client)
	if err != nil {
		return is.failed(err)
	}
	owners, err := p.owners(ctx)
	if err != nil {
		return is.failed(err)
	}
	stored, errs := map[string]objects{}, []error(nil)
	for name, one := range want {
		o, err := p.bring(ctx, one, have[name], owners, free)
		switch {
		case err == nil:
			stored[name], is.alone[one.Policy] = o, one.Judged
		case errors.Is(err, errAfterWebhook):
			is.waits = true
			is.says[one.Policy] = reach{metav1.ConditionFalse, v1beta1.ReasonInProgress, err.Error()}
		case err != nil:
			is.says[one.Policy] = notWritten(err)
			errs = append(errs, err)
		}
	}
	canary, beside := canaryOf(stored), map[string]policies.InProcess{} // beside: of no policy
	if none == "" {
		beside[policies.InProcessGuardName] = set.InProcessGuard()
	}
	if canary != "" {
		beside[canary] = policies.InProcessCanary(canary, p.namespace)
	}
	for name, o := range have {
		switch {
		case want[name].Admission != nil || beside[name].Admission != nil:
		case known[name] && !free:
			is.waits = true
		default:
			errs = append(errs, p.remove(ctx, o))
		}
	}
	for name, one := range beside {
		_, err = p.bring(ctx, one, have[name], owners, true)
		errs = append(errs, err)
	}
	if is.proven = canary == "" || p.judges(ctx, canary); !is.proven {
		is.unproven()
	}
	return is, errors.Join(errs...)
}

// failed sets what is said of all valid policies when the objects cannot be read.
func (j judged) failed(err error) (judged, error) {
	for key, was := range j.says {
		if was.reason != v1beta1.ReasonNotValid {
			j.says[key] = notWritten(err)
		}
	}
	return j, err
}

func notWritten(err error) reach {
	return reach{metav1.ConditionFalse, v1beta1.ReasonNotWritten,
		"its ValidatingAdmissionPolicy cannot be written, and the one written before stays in force: " + plainly(err.Error())}
}

// unproven takes back what only holds if the API server judges.
func (j *judged) unproven() {
	for key, says := range j.says {
		if says.reason == v1beta1.ReasonJudged || says.reason == v1beta1.ReasonPartial {
			j.says[key] = reach{metav1.ConditionFalse, v1beta1.ReasonInProgress,
				"its ValidatingAdmissionPolicy is written, and the API server does not judge by it yet. If that stays so, " +
					"see that its admission plugin ValidatingAdmissionPolicy is on, and that there is a Lease " + policies.Canary}
		}
	}
}

// serves returns the version of the API server, and why no objects may exist; empty if they may.
func (p *inProcess) serves() (v *kubeversion.Version, none string, err error) {
	is, err := p.version.ServerVersion()
	if err != nil {
		return nil, "", fmt.Errorf("ask the API server for its version: %w", err)
	}
	if v, err = kubeversion.ParseGeneric(is.GitVersion); err != nil {
		return nil, "", fmt.Errorf("read the version of the API server: %w", err)
	}
	switch {
	case p.off:
		none = "--in-process is Off"
	case v.LessThan(inProcessOldest):
		none = fmt.Sprintf("the API server is of version %s, and ValidatingAdmissionPolicies need %s", v, inProcessOldest)
	}
	return v, none, nil
}

// compile returns the objects for policies, by name. For each it sets in says what holds when the
// API server judges by them.
func (p *inProcess) compile(set *policies.Set, v *kubeversion.Version, none string, says map[policies.PolicyKey]reach,
) map[string]policies.InProcess {
	want := map[string]policies.InProcess{}
	for _, one := range set.InProcess(v, true) {
		name := inProcessName(one.Policy)
		why := none
		switch {
		case why != "" || one.Admission == nil:
		case !slices.Contains(one.Binding.Spec.ValidationActions, admissionregistrationv1.Deny):
			why = "a policy on trial refuses nothing, and Weir tells of it"
		case len(want) == mostInProcess:
			why = fmt.Sprintf("the API server judges %d policies by itself, the first by kind and name", mostInProcess)
		case len(name) > mostName:
			why = "the policy's name is too long for that of a ValidatingAdmissionPolicy"
		}
		if says[one.Policy] = saysOf(one, why); says[one.Policy].reason != v1beta1.ReasonNeedsWeir {
			one.Admission.Name, one.Binding.Name, one.Binding.Spec.PolicyName = name, name, name
			want[name] = one
		}
	}
	return want
}

// inProcessName returns the name of the objects of a policy.
func inProcessName(of policies.PolicyKey) string {
	return "weir-" + strings.ToLower(of.Kind) + "-" + of.Name
}

// saysOf returns what holds for a policy when the API server judges by what was compiled. why is
// why nothing is written for it.
func saysOf(one policies.InProcess, why string) reach {
	left := make([]string, len(one.LeftOut))
	for i, l := range one.LeftOut {
		left[i] = l.Field + ": " + l.Why
	}
	if why == "" && one.Admission == nil {
		why = strings.Join(left, "; ")
	}
	switch {
	case why != "":
		return reach{metav1.ConditionFalse, v1beta1.ReasonNeedsWeir,
			"no part of the policy is enforced while Weir is away: " + why}
	case len(left) > 0:
		return reach{metav1.ConditionFalse, v1beta1.ReasonPartial,
			"the API server judges the policy by itself, also while Weir is away, except for " + strings.Join(left, "; ")}
	}
	return reach{metav1.ConditionTrue, v1beta1.ReasonJudged,
		"the API server judges the policy by itself, also while Weir is away"}
}

// judges reports whether the API server judges by a canary, and so by all that was written before
// it, from which the canary's name is computed.
func (p *inProcess) judges(ctx context.Context, canary string) bool {
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	number := newNumber()
	o := canaryDelete(number)
	o.PropagationPolicy = new(metav1.DeletePropagationOrphan)
	err := p.leases.Delete(ctx, policies.Canary, o)
	return err != nil && strings.Contains(err.Error(), policies.InProcessAnswer(canary, number))
}

package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/policyfacts"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Judge returns what policies say about the delete of an object: a refusal and its reason, or
// warnings. If something for that cannot be read or asked for, the verdict has a doubt: it is not
// known whether the delete is refused.
func (p *Policies) Judge(ctx context.Context, object *unstructured.Unstructured,
	gvr schema.GroupVersionResource, propagation metav1.DeletionPropagation) insight.Verdict {
	v, err := p.judge(ctx, object, gvr, propagation)
	if err != nil {
		return insight.Verdict{Doubt: words.Printable(strings.Join(strings.Fields(err.Error()), " "))}
	}
	return v
}

func (p *Policies) judge(ctx context.Context, object *unstructured.Unstructured,
	gvr schema.GroupVersionResource, propagation metav1.DeletionPropagation) (insight.Verdict, error) {
	ns, err := p.namespace(ctx, object.GetNamespace())
	if err = cmp.Or(p.unknownUser, err); err != nil {
		return insight.Verdict{}, err
	}
	q := policies.Question{
		Operation: policies.Delete, User: p.user, Kind: object.GroupVersionKind(), Resource: gvr,
		Namespace: object.GetNamespace(), Name: object.GetName(), OldObject: object.Object, NamespaceObject: ns,
		Now: time.Now(), Sealed: believed,
		Options: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions",
			"propagationPolicy": string(propagation)},
		Facts: policyfacts.Of(func(f func(*graph.Graph)) { f(p.world.Graph) }),
	}
	if gvr.GroupResource() == kinds.Namespaces {
		q.Namespace = q.Name // as in admission
	}
	d, err := p.decide(ctx, &q)
	if err != nil {
		return insight.Verdict{}, err
	}
	if d.Allowed {
		more, err := p.cascade(ctx, q)
		if err != nil {
			return insight.Verdict{}, err
		}
		more.Warnings = append(d.Warnings, more.Warnings...)
		d = more
	}
	v := insight.Verdict{Refused: !d.Allowed, Message: d.Message, Warnings: d.Warnings}
	if v.Refused && strings.Contains(v.Message, v1beta1.ConfirmDeleteAnnotation+"="+string(object.GetUID())) {
		if value, known := p.set.Confirmation(q); known {
			in := ""
			if object.GetNamespace() != "" {
				in = " -n " + object.GetNamespace()
			}
			v.Confirm = fmt.Sprintf("kubectl annotate %s%s --overwrite %s=%s",
				words.Object(gvr.GroupResource().String(), object.GetName()), in, v1beta1.ConfirmDeleteAnnotation, value)
		}
	}
	return v, nil
}

// believed accepts any seal of a confirmation: only the webhook has the key to check it.
func believed(_, _ string) bool { return true }

// mostRounds bounds how often a decision may need more permissions of the user.
const mostRounds = 4

func (p *Policies) decide(ctx context.Context, q *policies.Question) (policies.Decision, error) {
	for range mostRounds {
		d := p.set.Decide(*q)
		if d.AsksCollector {
			q.Collector = p.collector(ctx)
			d = p.set.Decide(*q)
		}
		if len(d.Needs) == 0 {
			return p.disclosed(*q, d, p.set.Decide), nil
		}
		if err := p.answer(ctx, q, d.Needs); err != nil {
			return d, err
		}
	}
	return policies.Decision{}, errors.New("policies ask for ever more permissions")
}

// disclosed makes a decision again with what the user may be told: the names of objects whose kinds
// could be listed with the user's rights.
func (p *Policies) disclosed(q policies.Question, d policies.Decision,
	again func(policies.Question) policies.Decision) policies.Decision {
	if len(d.Discloses) == 0 {
		return d
	}
	answers := map[policies.Access]policies.Answer{}
	maps.Copy(answers, q.Answers)
	for _, a := range d.Discloses {
		answers[a] = policies.Answer(p.world.HasRead(schema.GroupResource{Group: a.Group, Resource: a.Resource}))
	}
	q.Answers = answers
	return again(q)
}

// collector returns which collector works, by Weir's canary ConfigMap. If that cannot be listed, it
// is not Weir.
func (p *Policies) collector(ctx context.Context) policies.Collector {
	if p.collects != policies.CollectorUnknown {
		return p.collects
	}
	p.collects = policies.OthersCollect
	list, err := p.clients.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, v1beta1.CollectorCanary).String()})
	if err != nil {
		return p.collects
	}
	for i := range list.Items {
		if c, err := policies.CollectorBy(&list.Items[i].ObjectMeta, time.Now()); err == nil && c == policies.WeirCollects {
			p.collects = c
		}
	}
	return p.collects
}

// answer asks for permissions that a decision depends on, and notes in the World what is not known.
func (p *Policies) answer(ctx context.Context, q *policies.Question, needs []policies.Access) error {
	answers := map[policies.Access]policies.Answer{}
	maps.Copy(answers, q.Answers)
	for _, need := range needs {
		may, err := p.may(ctx, need)
		if err != nil {
			p.world.Missed("what you may do, for policies to judge", apierrors.IsForbidden(err), ReasonOf(err))
			return fmt.Errorf("ask the API server what you may do, for policies to judge: %w", err)
		}
		answers[need] = may
	}
	q.Answers = answers
	return nil
}

// may asks the API server whether the user has a permission.
func (p *Policies) may(ctx context.Context, a policies.Access) (policies.Answer, error) {
	spec := authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: a.Verb, Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.Name,
	}}
	review, err := p.clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return policies.Answer(review.Status.Allowed), nil
}

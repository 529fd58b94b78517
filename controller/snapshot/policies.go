package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/insight"
	"github.com/weir-dev/weir/controller/policyfacts"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Policies are those of a cluster, with what it takes to ask them about deletes of one user: whoever reads.
type Policies struct {
	set        *policies.Set
	world      *insight.World
	clients    kubernetes.Interface
	objects    dynamic.Interface
	user       policies.User
	namespaces map[string]map[string]any
	stamps     map[schema.GroupResource]bool
	whole      int                // objects that were read whole so far
	collects   policies.Collector // unknown until somebody asks
}

// policyKinds are the kinds of policies that have a say about deletes.
var policyKinds = []string{"deletionpolicies", "drainpolicies"}

// Policies reads the policies of the cluster that a World is of. nil: it has none. What could not be read is noted in the
// World.
func (r *Reader) Policies(ctx context.Context, w *insight.World) (*Policies, error) {
	p := &Policies{world: w, namespaces: map[string]map[string]any{}, stamps: map[schema.GroupResource]bool{}}
	var err error
	if p.objects, err = dynamic.NewForConfig(r.Config); err != nil {
		return nil, fmt.Errorf("make a client for policies: %w", err)
	}
	if p.clients, err = kubernetes.NewForConfig(r.Config); err != nil {
		return nil, fmt.Errorf("make a client for reviews: %w", err)
	}
	var sources []policies.Source
	for _, resource := range policyKinds {
		gr := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: resource}
		if !w.Serves(gr) {
			continue // Weir's policies are not known here
		}
		list, err := p.objects.Resource(gr.WithVersion(v1alpha1.GroupVersion.Version)).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err): // and not any more
			continue
		case err != nil:
			w.NotListed(gr, apierrors.IsForbidden(err), reasonOf(err)+" (so what they refuse and change is not known)")
			continue
		}
		for i := range list.Items {
			sources = append(sources, policies.Source{Object: list.Items[i].Object})
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	p.set = policies.Build(nil, sources, policies.Options{}) //nolint:contextcheck // admitting a policy costs microseconds
	review, err := p.clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask the API server who you are, for policies to judge: %w", err)
	}
	u := review.Status.UserInfo
	p.user = policies.User{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: map[string][]string{}}
	for k, v := range u.Extra {
		p.user.Extra[k] = v
	}
	return p, nil
}

// Judge is what policies say about the delete of an object: that it is refused, and why, or warnings.
func (p *Policies) Judge(ctx context.Context, object *unstructured.Unstructured, gvr schema.GroupVersionResource, propagation metav1.DeletionPropagation) (insight.Verdict, error) {
	ns, err := p.namespace(ctx, object.GetNamespace())
	if err != nil {
		return insight.Verdict{}, err
	}
	q := policies.Question{
		Operation: policies.Delete, User: p.user, Kind: object.GroupVersionKind(), Resource: gvr,
		Namespace: object.GetNamespace(), Name: object.GetName(), OldObject: object.Object, NamespaceObject: ns,
		Options: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "propagationPolicy": string(propagation)},
		Facts:   policyfacts.Of(func(f func(*graph.Graph)) { f(p.world.Graph) }),
	}
	if gvr.GroupResource() == namespacesKind {
		q.Namespace = q.Name // as admission has it
	}
	d, err := p.decide(ctx, &q)
	if err == nil && d.Allowed {
		var more policies.Decision
		if more, err = p.cascade(ctx, q); err == nil {
			more.Warnings = append(d.Warnings, more.Warnings...)
			d = more
		}
	}
	v := insight.Verdict{Refused: !d.Allowed, Message: d.Message, Warnings: d.Warnings}
	if v.Refused && strings.Contains(v.Message, v1alpha1.ConfirmDeleteAnnotation+"="+string(object.GetUID())) {
		if value, known := p.set.Confirmation(q); known {
			in := ""
			if object.GetNamespace() != "" {
				in = " -n " + object.GetNamespace()
			}
			v.Confirm = fmt.Sprintf("kubectl annotate %s%s --overwrite %s=%s", words.Object(gvr.GroupResource().String(), object.GetName()), in, v1alpha1.ConfirmDeleteAnnotation, value)
		}
	}
	return v, err
}

var namespacesKind = schema.GroupResource{Resource: "namespaces"}

// mostRounds is how often a decision may need to know more about the user's permissions.
const mostRounds = 4

func (p *Policies) decide(ctx context.Context, q *policies.Question) (policies.Decision, error) {
	for range mostRounds {
		d := p.set.Decide(*q)
		if d.AsksCollector {
			q.Collector = p.collector(ctx)
			d = p.set.Decide(*q)
		}
		if len(d.Needs) == 0 {
			if len(d.Tells) == 0 || len(d.Tells) > mostTold {
				return d, nil
			}
			told := *q
			if err := p.answer(ctx, &told, d.Tells); err != nil {
				return d, err
			}
			return p.set.Decide(told), nil
		}
		if err := p.answer(ctx, q, d.Needs); err != nil {
			return d, err
		}
	}
	return policies.Decision{}, errors.New("policies ask for ever more permissions")
}

// collector is who collects garbage, by Weir's canary, which stands nowhere else for long. Whoever may not look does not know.
func (p *Policies) collector(ctx context.Context) policies.Collector {
	if p.collects == policies.CollectorUnknown {
		p.collects = p.readCollector(ctx)
	}
	return p.collects
}

func (p *Policies) readCollector(ctx context.Context) policies.Collector {
	list, err := p.clients.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, v1alpha1.CollectorCanary).String()})
	if err != nil {
		return policies.OthersCollect
	}
	for i := range list.Items {
		if c := policies.CollectorBy(&list.Items[i].ObjectMeta, time.Now()); c == policies.WeirCollects {
			return c
		}
	}
	return policies.OthersCollect
}

// mostTold is how many permissions are looked up only for what a refusal tells.
const mostTold = 64

// answer asks about permissions.
func (p *Policies) answer(ctx context.Context, q *policies.Question, needs []policies.Access) error {
	answers := maps.Clone(q.Answers)
	if answers == nil {
		answers = map[policies.Access]policies.Answer{}
	}
	for _, need := range needs {
		may, err := p.may(ctx, need)
		if err != nil {
			return err
		}
		answers[need] = may
	}
	q.Answers = answers
	return nil
}

// may asks the API server what the user may do.
func (p *Policies) may(ctx context.Context, a policies.Access) (policies.Answer, error) {
	review, err := p.clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.Verb, Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the API server what you may do, for policies to judge: %w", err)
	}
	return policies.Answer(review.Status.Allowed), nil
}

// mostWhole is how many objects are read whole because a condition looks at more than metadata.
const mostWhole = 1000

// cascade judges what goes along.
func (p *Policies) cascade(ctx context.Context, q policies.Question) (policies.Decision, error) {
	c := p.set.Cascade(q)
	if c == nil {
		return policies.Decision{Allowed: true}, nil
	}
	for _, l := range c.Looks() {
		if l.More || l.Whole && len(l.Objects) > mostWhole {
			c.TooMany(&l, len(l.Objects))
			continue
		}
		for _, o := range l.Objects {
			object, err := p.object(ctx, l, o)
			if err != nil {
				c.Unread(&l, err)
				break
			}
			ns, err := p.namespace(ctx, o.Namespace)
			if err != nil {
				return policies.Decision{}, err
			}
			if object != nil {
				c.Saw(&l, object, ns)
			}
		}
	}
	d := c.Decide(nil)
	if len(d.Tells) > 0 && len(d.Tells) <= mostTold {
		told := q
		if err := p.answer(ctx, &told, d.Tells); err != nil {
			return d, err
		}
		d = c.Decide(told.Answers)
	}
	return d, nil
}

// object is one that goes, as a map; nil if it is gone.
func (p *Policies) object(ctx context.Context, l policies.Look, o policies.Caught) (map[string]any, error) {
	if !l.Whole {
		return p.metaOf(o.UID, l.Kind)
	}
	u, err := p.objects.Resource(l.Resource).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return u.Object, nil
}

// metaOf is the metadata of an object that was listed.
func (p *Policies) metaOf(uid types.UID, gvk schema.GroupVersionKind) (map[string]any, error) {
	m := p.world.Meta(uid)
	if m == nil {
		return nil, nil
	}
	whole := *m
	whole.SetGroupVersionKind(gvk)
	whole.ManagedFields = nil
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&whole)
}

// namespace is the live Namespace that an object is in; nil for none.
func (p *Policies) namespace(ctx context.Context, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil
	}
	if ns, ok := p.namespaces[name]; ok {
		return ns, nil
	}
	u, err := p.objects.Resource(namespacesKind.WithVersion("v1")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the namespace %q, by whose labels policies select: %w", name, err)
	}
	p.namespaces[name] = u.Object
	return u.Object, nil
}

// Waves is the order in which policies have the content of a namespace go; nil for one that no policy selects.
func (p *Policies) Waves(ctx context.Context) func(namespace string) func(graph.View) int {
	return func(namespace string) func(graph.View) int {
		ns, err := p.namespace(ctx, namespace)
		if err != nil {
			return nil
		}
		drain := p.set.DrainOf(ns)
		if drain == nil {
			return nil
		}
		return func(v graph.View) int {
			object, err := p.metaOf(v.UID, schema.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: v.KindName})
			if err != nil {
				return len(drain.Waves) - 1
			}
			return drain.Wave(v.Kind, object)
		}
	}
}

// Enforce is what policies make of the deletion of an object, however it comes to be deleted. v is as the DELETE leaves it.
func (p *Policies) Enforce(ctx context.Context) func(graph.View) insight.Enforcement {
	return func(v graph.View) insight.Enforcement {
		stamps, known := p.stamps[v.Kind]
		if !known {
			stamps, _ = p.set.AddsFinalizer(v.Kind)
			p.stamps[v.Kind] = stamps
		}
		if !stamps {
			return insight.Enforcement{}
		}
		gvk := schema.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: v.KindName}
		object, err := p.metaOf(v.UID, gvk)
		if err != nil || object == nil {
			return insight.Enforcement{}
		}
		ns, err := p.namespace(ctx, v.Namespace)
		if err != nil {
			return insight.Enforcement{Doubt: err.Error()}
		}
		if p.set.LooksBeyondMetadata(v.Kind) {
			if p.whole++; p.whole > mostWhole {
				return insight.Enforcement{Doubt: "policies look at more than its metadata, and it was not read: there are too many"}
			}
			u, err := p.objects.Resource(v.Kind.WithVersion(v.Version)).Namespace(v.Namespace).Get(ctx, v.Name, metav1.GetOptions{})
			if err != nil {
				return insight.Enforcement{Doubt: "policies look at more than its metadata, and it could not be read: " + reasonOf(err)}
			}
			object = u.Object
		}
		if err := unstructured.SetNestedStringSlice(object, v.Finalizers, "metadata", "finalizers"); err != nil {
			return insight.Enforcement{Doubt: err.Error()}
		}
		s := p.set.Enforce(policies.Stored(gvk, v.Kind.WithVersion(v.Version), object, ns))
		out := insight.Enforcement{By: s.By, Propagation: metav1.DeletionPropagation(s.Propagation)}
		if s.Limit != nil {
			out.Limit = &s.Limit.Most
		}
		if s.KeepsSome() {
			out.Spares = s.Keeps
			if slices.Contains(v.Finalizers, metav1.FinalizerDeleteDependents) && p.collector(ctx) != policies.WeirCollects {
				out.Doubt = "a garbage collector that is not Weir may delete dependents before they are released"
			}
		}
		for _, e := range s.Errors {
			out.Doubt = e.String()
		}
		return out
	}
}

package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/policyfacts"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/finalizers"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Policies judges deletes of the user who reads by the policies of a cluster.
type Policies struct {
	set           *policies.Set
	world         *insight.World
	clients       kubernetes.Interface
	objects       dynamic.Interface
	lister        *finalizers.Lister
	user          policies.User
	namespaces    map[string]map[string]any
	addsFinalizer map[schema.GroupResource]bool
	lists         map[place][]*metav1.PartialObjectMetadata
	unread        map[string]error   // namespaces that could not be read
	whole         int                // how many objects were read whole
	collects      policies.Collector // unknown until something asks
	unknownUser   error              // why the user is not known; nil: it is
}

// usualHome is the namespace in which Weir is assumed to be installed: propagation and brakes do
// not apply there.
const usualHome = "weir-system"

// mostFull bounds the objects that are read whole, because conditions use more than metadata, to
// tell how their deletions go on.
const mostFull = 1000

// policyKinds are the kinds of policies that apply to deletes.
var policyKinds = []string{"deletionpolicies", "drainpolicies"}

// Policies reads the policies of the cluster of a World. It returns nil if there are none, and
// notes in the World what could not be read.
func (r *Reader) Policies(ctx context.Context, w *insight.World) (*Policies, error) {
	p := &Policies{world: w, namespaces: map[string]map[string]any{}, lists: map[place][]*metav1.PartialObjectMetadata{},
		unread: map[string]error{}, addsFinalizer: map[schema.GroupResource]bool{}}
	var err error
	if p.objects, err = dynamic.NewForConfig(r.Config); err != nil {
		return nil, fmt.Errorf("make a client for policies: %w", err)
	}
	if p.clients, err = kubernetes.NewForConfig(r.Config); err != nil {
		return nil, fmt.Errorf("make a client for reviews: %w", err)
	}
	if p.lister, err = finalizers.NewLister(r.Config); err != nil {
		return nil, err
	}
	var sources []policies.Source
	for _, resource := range policyKinds {
		gr := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: resource}
		if !w.Serves(gr) {
			continue // Weir is not installed
		}
		list, err := p.objects.Resource(gr.WithVersion(v1beta1.GroupVersion.Version)).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err): // not any more
			continue
		case err != nil:
			w.NotListed(gr, apierrors.IsForbidden(err), ReasonOf(err)+" (so what they refuse and change is not known)")
			continue
		}
		for i := range list.Items {
			sources = append(sources, policies.Source{Object: list.Items[i].Object})
		}
	}
	sources = append(sources, p.inFiles(ctx)...)
	if len(sources) == 0 {
		return nil, nil
	}
	//nolint:contextcheck // admitting a policy costs microseconds
	p.set = policies.Build(nil, sources, policies.Options{Namespace: usualHome})
	review, err := p.clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		// How deletions go on does not depend on the user.
		p.unknownUser = fmt.Errorf("the API server does not say who you are: %s", ReasonOf(err))
		w.Missed("who you are, for policies to judge", apierrors.IsForbidden(err), ReasonOf(err))
		return p, nil
	}
	u := review.Status.UserInfo
	p.user = policies.User{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: map[string][]string{}}
	for k, v := range u.Extra {
		p.user.Extra[k] = v
	}
	return p, nil
}

// inFiles returns the policies that are files and apply to deletes, and notes in the World if they
// could not be read.
func (p *Policies) inFiles(ctx context.Context) (sources []policies.Source) {
	if !p.world.Serves(schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: policyKinds[0]}) {
		return nil // Weir is not installed
	}
	files, err := FilePolicies(ctx, p.objects, usualHome)
	if err != nil && !apierrors.IsNotFound(err) {
		p.world.Missed("policies that are files", apierrors.IsForbidden(err),
			ReasonOf(err)+" (so what they refuse and change is not known)")
	}
	for _, f := range files {
		if f.Kind != "OwnerReferencePolicy" {
			sources = append(sources, policies.Source{File: f.File, Object: map[string]any{"kind": f.Kind,
				"apiVersion": v1beta1.GroupVersion.String(), "metadata": map[string]any{"name": f.Name}, "spec": f.Spec}})
		}
	}
	return sources
}

// FilePolicies returns the policies that are files, from the ConfigMap that the controller writes
// into Weir's namespace. The error is that of the API server, NotFound if there are no such files.
func FilePolicies(
	ctx context.Context, client dynamic.Interface, namespace string,
) (all []v1beta1.FilePolicy, err error) {
	maps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	m, err := maps.Namespace(namespace).Get(ctx, v1beta1.FilePolicies, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	text, _, _ := unstructured.NestedString(m.Object, "data", v1beta1.FilePoliciesKey)
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, v1beta1.FilePolicies, err)
	}
	return all, nil
}

// Rule makes a deletion go as the policies say. p may be nil.
func (p *Policies) Rule(ctx context.Context, d *insight.Deletion) {
	if p != nil {
		d.Enforce, d.Protects, d.Waves = p.Enforce(ctx), p.Protects(ctx), p.Waves(ctx)
	}
}

// metaOf returns the metadata of a listed object, or nil.
func (p *Policies) metaOf(uid types.UID, gvk schema.GroupVersionKind) (map[string]any, error) {
	m := p.world.Meta(uid)
	if m == nil {
		return nil, nil
	}
	return asMap(m, gvk)
}

func asMap(m *metav1.PartialObjectMetadata, gvk schema.GroupVersionKind) (map[string]any, error) {
	whole := *m
	whole.SetGroupVersionKind(gvk)
	whole.ManagedFields = nil
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&whole)
}

// namespace returns the live Namespace of that name; nil if the name is empty.
func (p *Policies) namespace(ctx context.Context, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil
	}
	if ns, ok := p.namespaces[name]; ok {
		return ns, p.unread[name]
	}
	u, err := p.objects.Resource(kinds.Namespaces.WithVersion("v1")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		p.namespaces[name], p.unread[name] = nil, fmt.Errorf("the namespace %q, by whose labels policies select, "+
			"could not be read: %s", name, ReasonOf(err))
		p.world.Missed(fmt.Sprintf("the namespace %q, by whose labels policies select,", name), apierrors.IsForbidden(err),
			ReasonOf(err))
		return nil, p.unread[name]
	}
	p.namespaces[name] = u.Object
	return u.Object, nil
}

// ofNamespace returns what policies say about the deletion of a namespace.
func (p *Policies) ofNamespace(ctx context.Context, name string) insight.Enforcement {
	ns, err := p.namespace(ctx, name)
	if err != nil {
		return insight.Enforcement{Doubt: err.Error()}
	}
	if d := p.set.DrainOf(ns); d != nil && d.Archive != nil {
		return insight.Enforcement{Archive: d.Archive.By}
	}
	return insight.Enforcement{}
}

// Waves returns a function that returns the order in which policies delete the content of a
// namespace; nil if no policy selects the namespace.
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

// Protects returns a function that returns why policies refuse a collector the delete of an object,
// as the webhook would; why is empty if they do not, and doubt is why that is not known.
func (p *Policies) Protects(ctx context.Context) func(graph.View) (why, doubt string) {
	facts := policyfacts.Of(func(f func(*graph.Graph)) { f(p.world.Graph) })
	return func(v graph.View) (why, doubt string) {
		holds := v.Kind == kinds.Namespaces || v.Kind == kinds.Definitions
		if !p.set.Guards(v.Kind) && !holds {
			return "", ""
		}
		object, ns, err := p.stored(ctx, &v)
		if err != nil {
			return "", err.Error()
		}
		if object == nil {
			return "", ""
		}
		q := policies.Question{
			Operation: policies.Delete, Asked: policies.WebhookGuard, User: policies.User{Name: policies.GarbageCollector},
			Kind:     schema.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: v.KindName},
			Resource: v.Kind.WithVersion(v.Version), Namespace: v.Namespace, Name: v.Name,
			OldObject: object, NamespaceObject: ns, Facts: facts, Now: time.Now(), Sealed: believed,
		}
		d := p.set.Decide(q)
		if d.Allowed && holds {
			if d, err = p.cascade(ctx, asHolder(q)); err != nil {
				return "", err.Error()
			}
		}
		switch {
		case d.Allowed:
			return "", ""
		case d.Unjudged:
			return "", d.Message
		}
		return d.Audit[policies.AuditRefused], ""
	}
}

// asHolder returns the question about a Namespace or a definition as admission has it. The World
// has only their metadata.
func asHolder(q policies.Question) policies.Question {
	if q.Resource.GroupResource() == kinds.Namespaces {
		q.Namespace = q.Name
		return q
	}
	of := schema.ParseGroupResource(q.Name) // definitions are named so
	q.OldObject["spec"] = map[string]any{"group": of.Group, "names": map[string]any{"plural": of.Resource}}
	return q
}

// stored returns an object as policies use it, and its namespace; nil if it is gone. It reads the
// whole object if they use more than metadata.
func (p *Policies) stored(ctx context.Context, v *graph.View) (object, ns map[string]any, err error) {
	object, err = p.metaOf(v.UID, schema.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: v.KindName})
	if err != nil || object == nil {
		return nil, nil, nil //nolint:nilerr // it is not known any more
	}
	if ns, err = p.namespace(ctx, v.Namespace); err != nil {
		return nil, nil, err
	}
	if !p.set.LooksBeyondMetadata(v.Kind) {
		return object, ns, nil
	}
	if p.whole++; p.whole > mostFull {
		return nil, nil, errors.New("policies look at more than its metadata, and it was not read: there are too many")
	}
	u, err := p.objects.Resource(v.Kind.WithVersion(v.Version)).Namespace(v.Namespace).Get(ctx, v.Name,
		metav1.GetOptions{})
	if err != nil {
		return nil, nil, errors.New("policies look at more than its metadata, and it could not be read: " + ReasonOf(err))
	}
	return u.Object, ns, nil
}

// Enforce returns a function that returns what policies say about the deletion of an object,
// whoever deletes it. v is the object as the DELETE leaves it.
func (p *Policies) Enforce(ctx context.Context) func(graph.View) insight.Enforcement {
	return func(v graph.View) insight.Enforcement {
		if v.Kind == kinds.Namespaces {
			return p.ofNamespace(ctx, v.Name)
		}
		addsFinalizer, known := p.addsFinalizer[v.Kind]
		if !known {
			addsFinalizer, _ = p.set.AddsFinalizer(v.Kind)
			p.addsFinalizer[v.Kind] = addsFinalizer
		}
		if !addsFinalizer {
			return insight.Enforcement{}
		}
		object, ns, err := p.stored(ctx, &v)
		if err != nil {
			return insight.Enforcement{Doubt: err.Error()}
		}
		if object == nil {
			return insight.Enforcement{}
		}
		gvk := schema.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: v.KindName}
		if err := unstructured.SetNestedStringSlice(object, v.Finalizers, "metadata", "finalizers"); err != nil {
			return insight.Enforcement{Doubt: err.Error()}
		}
		s := p.set.Enforce(policies.Stored(gvk, v.Kind.WithVersion(v.Version), object, ns))
		out := insight.Enforcement{By: s.By, Propagation: metav1.DeletionPropagation(s.Propagation)}
		if s.Archive != nil {
			out.Archive = s.Archive.By
		}
		if s.Limit != nil {
			out.Limit, out.LimitBy = &s.Limit.Most, s.Limit.By
			if slices.Contains(v.Finalizers, metav1.FinalizerDeleteDependents) && p.collector(ctx) != policies.WeirCollects {
				out.Unheld = "a garbage collector that is not Weir may delete dependents before a person has decided"
			}
		}
		if s.KeepsSome() {
			out.Keeps = s.Keeps
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

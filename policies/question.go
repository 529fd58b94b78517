package policies

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

// Operation is what a request does, in the words of admission.
type Operation string

// The operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// User is the user of a request.
type User = user.DefaultInfo

// Question is a request, as admission sees it, with what the cluster knows about it.
type Question struct {
	Operation Operation
	// Asked is the webhook that asks; only its part is judged. The zero value judges everything.
	Asked Webhook
	// Part selects the policies that are asked. The zero value is all.
	Part Part
	User User

	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	// The request as the client sent it, if the API server converted it; by default the same.
	RequestKind        schema.GroupVersionKind
	RequestResource    schema.GroupVersionResource
	RequestSubresource string

	// Namespace and Name are the request's. A deletecollection has no name; the object's counts.
	Namespace, Name string
	// Object is nil at a DELETE, OldObject at a CREATE. Neither is changed. After FromRequest they
	// hold the metadata and the kind; conditions see the whole objects.
	Object, OldObject map[string]any
	// evicted: it is the DELETE that an eviction amounts to.
	evicted bool
	// anyUser: the user does not matter, only the object does.
	anyUser bool
	// The undecoded objects of FromRequest; nil if Object and OldObject are whole.
	object, oldObject *text
	// Options are the request's: DeleteOptions at a DELETE.
	Options map[string]any
	DryRun  bool
	// Now is the API server's time; zero if unknown. It is written to an object that gets the
	// finalizer at an UPDATE, because a DELETE may be under way that has not seen the finalizer (RB
	// 6.24), and another process may judge that.
	Now time.Time
	// Sealed verifies what Weir wrote about a wave or a confirmation; nil if there is no key.
	Sealed func(text, seal string) bool
	// Seal seals such a text; false while the key is not known.
	Seal func(text string) (seal string, ok bool)

	// NamespaceObject is the live Namespace of the object; nil for cluster-scoped objects.
	NamespaceObject map[string]any
	Facts           Facts
	// Collector answers Decision.AsksCollector.
	Collector Collector
	// Answers are those to Decision.Needs.
	Answers map[Access]Answer
	// Owners are the owners that Decision.Owners asked for; Unknown if one could not be read.
	Owners map[OwnerRef]Owner
	// Quotes: errors of conditions may quote the object, since their reader wrote it.
	Quotes bool
}

// Facts are what the ownership graph and discovery know. A nil function knows nothing, and a policy
// that needs it cannot be judged. A false beside an AlsoDeleted means that it is at least that
// much.
type Facts struct {
	// Dependents counts what would be deleted, too, at any depth. It looks at so many references as
	// can be looked at in a millisecond, and, where more objects are accepted, at eight for each of
	// these; then the count is Cut.
	Dependents func(s Search, accepted int) (AlsoDeleted, bool)
	// Digest identifies the set of objects that go: it changes if any comes or goes.
	Digest func(Search) (digest string, complete bool)
	// Instances counts the objects of a custom resource.
	Instances func(schema.GroupResource) (AlsoDeleted, bool)
	// Content counts the content of a namespace, without what Kubernetes itself puts into each (the
	// ConfigMap kube-root-ca.crt, the ServiceAccount default), and without Events, which Weir does
	// not follow.
	Content func(namespace string) (AlsoDeleted, bool)
	// Owner looks for the owner that a dependent in a namespace claims to have.
	Owner func(ref OwnerRef, namespace string) Owner
	// Kind looks up a kind in discovery.
	Kind func(schema.GroupVersionKind) Kind
	// Catch finds the objects of wanted resources that would be deleted with an object, except its
	// own dependents of kept kinds. It looks at as many references as it can in a millisecond.
	Catch func(uid types.UID, kept, wanted func(schema.GroupResource) bool) Catch
	// Holds returns the wanted resources of which the Search's namespace holds objects, without
	// what Kubernetes itself puts into each, or its Instances if there are any. It returns false if
	// there may be others.
	Holds func(s Search, wanted func(schema.GroupResource) bool) (kinds []Caught, complete bool)
	// Depends reports whether one object is a dependent of another, directly or through others.
	Depends func(dependent, on types.UID) bool
}

// Search describes what is deleted.
type Search = graph.Search

// Catch is the objects that were looked for and would be deleted.
type Catch struct {
	Objects []Caught
	// Complete says that there are no others.
	Complete bool
}

// Caught is an object that would also be deleted.
type Caught struct {
	Resource        schema.GroupVersionResource
	Kind            schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
}

// AlsoDeleted is what would be deleted with an object.
type AlsoDeleted struct {
	Kinds []KindCount `json:"kinds,omitempty"`
	// Cut says that there were more references than are looked at, so the count is a lower bound.
	Cut bool `json:"cut,omitempty"`
}

// KindCount is how many objects of a resource would also be deleted, and their first names, as
// namespace/name if that helps.
type KindCount struct {
	Resource string   `json:"resource"`
	Count    int      `json:"count"`
	Names    []string `json:"names,omitempty"`
}

// Total returns how many objects would also be deleted.
func (f AlsoDeleted) Total() int {
	n := 0
	for _, k := range f.Kinds {
		n += k.Count
	}
	return n
}

// OwnerRef is an owner reference.
type OwnerRef struct {
	APIVersion, Kind, Name string
	UID                    types.UID
	Controller, Block      bool
}

// What is known about an owner. The zero value is the safe one: nothing follows from what is not
// known.
const (
	Unknown = graph.Unanswered
	Present = graph.Present
	Absent  = graph.Absent
)

// Owner is what is known about the object that has an owner's uid.
type Owner = graph.Seen

// Kind is what discovery knows about a kind in one version.
type Kind = graph.ServedKind

// check returns an error for requests that cannot be judged. API servers do not send them.
func (q *Question) check() error {
	switch q.Operation {
	case Create:
		if q.Object == nil {
			return fmt.Errorf("judge a CREATE of %s: the request has no object", q.Resource.GroupResource())
		}
	case Update:
		if q.Object == nil || q.OldObject == nil {
			return fmt.Errorf("judge an UPDATE of %s: the request has no object or no oldObject", q.Resource.GroupResource())
		}
	case Delete:
		if q.OldObject == nil {
			return fmt.Errorf("judge a DELETE of %s: the request has no oldObject", q.Resource.GroupResource())
		}
	default:
		return fmt.Errorf("judge a request for %s: unknown operation %q", q.Resource.GroupResource(), q.Operation)
	}
	return nil
}

// Stored returns the question about a stored object that no client is about to change: for
// back-fill (FinalizersFor) and for terminating objects (Enforce).
func Stored(gvk schema.GroupVersionKind, gvr schema.GroupVersionResource, obj, namespace map[string]any) Question {
	o := object(obj)
	return Question{
		Operation: Update, Kind: gvk, Resource: gvr, Namespace: o.namespace(), Name: o.name(),
		Object: obj, OldObject: obj, NamespaceObject: namespace,
	}
}

// Of returns the same DELETE for the object as it is in obj.
func (q Question) Of(obj map[string]any) Question {
	q.OldObject, q.oldObject = obj, nil
	return q
}

// Evicts reports whether a request evicts a pod.
func (q *Question) Evicts() bool {
	return q.Operation == Create && q.Resource.GroupResource() == pods && q.Subresource == "eviction"
}

// AsEvicted returns the DELETE that an eviction amounts to: of the pod, with the Eviction's
// options.
func (q Question) AsEvicted(resource schema.GroupVersionResource, pod map[string]any) Question {
	d := *q.deleting(pod, nil)
	d.Resource, d.Kind = resource, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	d.RequestResource, d.RequestKind, d.evicted = schema.GroupVersionResource{}, schema.GroupVersionKind{}, true
	d.Options, _ = q.full()["deleteOptions"].(map[string]any)
	return d
}

// full returns the whole object after the request; nil if it cannot be decoded.
func (q *Question) full() map[string]any {
	all, err := q.object.full(q.Object)
	if err != nil {
		return nil
	}
	return all
}

// asDelete returns the question whether, and how, the object after a CREATE or UPDATE may be
// deleted, which decides about its finalizer.
func (q *Question) asDelete() *Question {
	d := q.deleting(q.Object, q.object)
	d.anyUser = true
	return d
}

// deleting returns the question whether the request's user may delete obj.
func (q *Question) deleting(obj map[string]any, whole *text) *Question {
	d := *q
	d.Operation, d.Subresource, d.RequestSubresource = Delete, "", ""
	d.OldObject, d.Object, d.Options = obj, nil, nil
	d.oldObject, d.object = whole, nil
	return &d
}

// judged returns the object of a request.
func (q *Question) judged() object {
	if q.Object != nil {
		return object(q.Object)
	}
	return object(q.OldObject)
}

// name returns the object's name; a deletecollection's request has none.
func (q *Question) name() string {
	if q.Name != "" {
		return q.Name
	}
	if n := q.judged().name(); n != "" {
		return n
	}
	return q.judged().str("metadata", "generateName")
}

// what returns the object as shown to users: deployments.apps "web" in namespace "shop".
func (q *Question) what() string {
	s := fmt.Sprintf("%s %q", q.Resource.GroupResource(), q.name())
	if q.Namespace != "" && !q.isNamespace() {
		s += fmt.Sprintf(" in namespace %q", q.Namespace)
	}
	return s
}

// kubectl returns the object's name in kubectl commands, which users paste.
func (q *Question) kubectl() string {
	s := words.Object(q.Resource.GroupResource().String(), q.name())
	if q.Namespace != "" && !q.isNamespace() {
		s += " -n " + q.Namespace
	}
	return s
}

func (q *Question) isNamespace() bool { return q.Resource.GroupResource() == namespaceResource }

func (q *Question) isCRD() bool { return q.Resource.GroupResource() == definitions }

// namespaced reports whether the object is in a namespace. A request for a Namespace says it is in
// itself.
func (q *Question) namespaced() bool { return q.Namespace != "" && !q.isNamespace() }

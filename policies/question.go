package policies

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Operation is what a request does; the words are those of admission.
type Operation string

// The operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// User is who asks.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Question is one request, as admission sees it, with what the cluster knows about it.
type Question struct {
	Operation Operation
	// Asked is the webhook that asks; only what is its own is then judged. The zero value judges all.
	Asked Webhook
	User  User

	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	// The request as the client sent it, where the API server converted it. Left out: the same.
	RequestKind        schema.GroupVersionKind
	RequestResource    schema.GroupVersionResource
	RequestSubresource string

	// Namespace and Name are the request's. A deletecollection has no name: the object's counts then.
	Namespace, Name string
	// Object is nil at a DELETE, OldObject at a CREATE. Neither is written to. Those of FromRequest hold the metadata and
	// what names the kind; conditions see all of them.
	Object, OldObject map[string]any
	// What FromRequest has not decoded; nil where Object and OldObject are whole.
	object, oldObject *text
	// Options are the request's: DeleteOptions at a DELETE.
	Options map[string]any
	DryRun  bool
	// Now is the time; the zero value is unknown. An object that is stamped at an UPDATE is marked with it, because a
	// DELETE may be on its way that has not seen the finalizer (RB 6.24).
	Now time.Time

	// NamespaceObject is the live Namespace that the object is in; nil for cluster-scoped objects.
	NamespaceObject map[string]any
	Facts           Facts
	// Answers are those to Decision.Needs.
	Answers map[Access]Answer
}

// Facts are what the ownership graph and discovery know. A nil function knows nothing, and a policy that needs it
// cannot be judged. Of a Fall, false means that it is at least that much.
type Facts struct {
	// Falls counts what falls with an object: its dependents and theirs, without those of spared kinds.
	Falls func(uid types.UID, spared func(schema.GroupResource) bool) (Fall, bool)
	// Instances counts the objects of a custom resource.
	Instances func(schema.GroupResource) (Fall, bool)
	// Content counts what is in a namespace, without what Kubernetes itself puts into each (the ConfigMap
	// kube-root-ca.crt, the ServiceAccount default), events and leases.
	Content func(namespace string) (Fall, bool)
	// Owner looks for the owner that a dependent in a namespace claims to have.
	Owner func(ref OwnerRef, namespace string) Owner
	// Kind looks up a kind in discovery.
	Kind func(schema.GroupVersionKind) Kind
	// Depends tells whether one object is, perhaps through others, a dependent of another.
	Depends func(dependent, on types.UID) bool
}

// Fall is what falls with an object.
type Fall struct {
	Kinds []FallKind `json:"kinds,omitempty"`
}

// FallKind is how many objects of a resource fall, and the first names of them, namespace/name where that helps.
type FallKind struct {
	Resource string   `json:"resource"`
	Count    int      `json:"count"`
	Names    []string `json:"names,omitempty"`
}

// Total is how many objects fall.
func (f Fall) Total() int {
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

// Presence is what is known about an object.
type Presence uint8

// Zero is the safe value: nothing is concluded from what is not known.
const (
	Unknown Presence = iota
	Present
	Absent
)

// Owner is what is known about the object that has an owner's uid.
type Owner struct {
	Presence  Presence
	Kind      schema.GroupKind // of the object that is Present, and so below
	Namespace string
	Name      string
}

// Kind is what discovery knows about a kind in one version.
type Kind struct {
	Known      bool // discovery has answered for the group
	Served     bool // in that version
	Namespaced bool
	Resources  []schema.GroupResource
}

// check finds requests that nobody could judge: an API server does not send them.
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

// Stored is the question about an object as it is stored, which nobody is about to change: what back-fill asks
// (StampFor) and what is asked of an object that terminates (Shape).
func Stored(gvk schema.GroupVersionKind, gvr schema.GroupVersionResource, obj, namespace map[string]any) Question {
	o := object(obj)
	return Question{
		Operation: Update, Kind: gvk, Resource: gvr, Namespace: o.namespace(), Name: o.name(),
		Object: obj, OldObject: obj, NamespaceObject: namespace,
	}
}

// asDelete is the question whether, and how, the object that a CREATE or UPDATE leaves behind may be deleted: what
// decides about its finalizer.
func (q *Question) asDelete() *Question {
	d := *q
	d.Operation, d.OldObject, d.Object, d.Options = Delete, q.Object, nil, nil
	d.oldObject, d.object = q.object, nil
	return &d
}

// judged is the object that a request is about.
func (q *Question) judged() object {
	if q.Object != nil {
		return object(q.Object)
	}
	return object(q.OldObject)
}

// name is the object's; a deletecollection's request has none.
func (q *Question) name() string {
	if q.Name != "" {
		return q.Name
	}
	if n := q.judged().name(); n != "" {
		return n
	}
	return q.judged().str("metadata", "generateName")
}

// what names the object for the user: deployments.apps "web" in namespace "shop".
func (q *Question) what() string {
	s := fmt.Sprintf("%s %q", q.Resource.GroupResource(), q.name())
	if q.Namespace != "" && !q.isNamespace() {
		s += fmt.Sprintf(" in namespace %q", q.Namespace)
	}
	return s
}

// plainName is a name that a shell leaves alone, and that is no flag. Most kinds have no others; those of RBAC do, and
// whoever is refused pastes what the refusal says.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// kubectl is how the user names the object to kubectl.
func (q *Question) kubectl() string {
	s := q.Resource.GroupResource().String() + " " + q.name()
	if !plainName.MatchString(q.name()) {
		s = "'" + strings.ReplaceAll(q.Resource.GroupResource().String()+"/"+q.name(), "'", `'\''`) + "'"
	}
	if q.Namespace != "" && !q.isNamespace() {
		s += " -n " + q.Namespace
	}
	return s
}

func (q *Question) isNamespace() bool {
	return q.Resource.Group == "" && q.Resource.Resource == "namespaces"
}

func (q *Question) isCRD() bool {
	return q.Resource.Group == "apiextensions.k8s.io" && q.Resource.Resource == "customresourcedefinitions"
}

// namespaced tells whether the object is in a namespace: a request for a Namespace says it is in itself.
func (q *Question) namespaced() bool { return q.Namespace != "" && !q.isNamespace() }

package graph

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/words"
)

// Verb is what is to be done with an object.
type Verb uint8

// The verbs. Keep and Wait are not requests: Keep has nothing ahead of it, Wait is for something
// that will make the object dirty again.
const (
	Keep       Verb = iota
	Wait            // for a watch, an answer, or other objects
	Lookup          // at one claim, with a live read
	Delete          // the object
	Release         // the object from some of its owners
	Unblock         // the object's owners: its references no longer hold up their deletion
	Unfinalize      // the object: its garbage-collection finalizer comes off, and ours with it
)

var verbNames = [...]string{"keep", "wait", "look", "delete", "release", "unblock", "unfinalize"}

func (v Verb) String() string { return verbNames[v] }

// Words says what is to be done with an object that is called so: "delete it".
func (a *Action) Words(object string) string {
	switch a.Verb {
	case Release:
		return "remove owner references from " + object
	case Unblock:
		return "keep " + object + " from blocking its owners"
	case Unfinalize:
		return "remove the finalizer " + a.Finalizer + " from " + object
	case Keep, Wait, Lookup, Delete:
	}
	return a.Verb.String() + " " + object
}

// Ref names one object at one version: what a request needs, and what a person can read.
type Ref struct {
	Kind            schema.GroupResource
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
}

func (r Ref) String() string {
	return r.Kind.String() + " " + nsName(r.Namespace, r.Name)
}

// Action is the one thing to do about an object, as far as the graph knows. It carries all that the
// request needs. Each request must have the uid and the resourceVersion of Object as preconditions,
// so that a decision is carried out only on what it was made about.
type Action struct {
	Verb   Verb
	Object Ref

	Claim       Claim                      // Lookup
	LowPriority bool                       // Lookup: the object is kept whatever the answer is
	Propagation metav1.DeletionPropagation // Delete
	AwaitedBy   []Claim                    // Delete: owners that wait for it; to be read live: they may orphan yet
	Cause       Claim                      // Delete: the first owner that waits, or else that is gone
	Inferred    Inference                  // Delete: what it rests on, if no owner was seen to be deleted
	Dependents  int32                      // Delete: how many references there are to it
	Owners      []metav1.OwnerReference    // Release, Unblock: the references that the object is to have
	Finalizer   string                     // Unfinalize: one that comes off; ours may do so besides
	Finalizers  []string                   // Unfinalize: the ones that stay
	Unseen      string                     // Wait: kinds that may hold dependents which the graph has not seen
	Kept        string                     // Release: why the object is not deleted; empty: nothing would delete it

	// Why says, for people, what the decision rests on. Stable, sorted where it lists.
	Why string
	// Unresolvable is set when the object is kept because a reference can never be resolved as
	// things are.
	Unresolvable Unresolvable
	// Mismatched is a reference whose uid belongs to an object in another namespace: owners are
	// looked for in the dependent's namespace only. nil if there is none, or it does not matter.
	Mismatched *metav1.OwnerReference
}

// Request reports whether the action asks something of the API server.
func (a Action) Request() bool { return a.Verb > Wait }

// Same reports whether two actions are the same decision about the same version of an object. It
// ignores words, the owner that is named first, the number of dependents, and the lists and history
// of a lookup.
func (a Action) Same(b Action) bool {
	a.Claim.Lists, b.Claim.Lists = 0, 0
	a.Claim.History, b.Claim.History = 0, 0
	return a.Verb == b.Verb && a.Unresolvable == b.Unresolvable && (!a.Request() ||
		a.Object == b.Object && a.Claim == b.Claim && a.LowPriority == b.LowPriority &&
			a.Propagation == b.Propagation && a.Inferred == b.Inferred && a.Finalizer == b.Finalizer &&
			slices.EqualFunc(a.Owners, b.Owners, sameReference) && slices.Equal(a.Finalizers, b.Finalizers))
}

// sameReference compares references by value: their optional booleans are pointers.
func sameReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		bitsOf(&a) == bitsOf(&b)
}

// String returns what is done, and why.
func (a Action) String() string {
	s := a.Verb.String()
	switch a.Verb {
	case Lookup:
		s += " at " + a.Claim.String()
		if a.LowPriority {
			s += ", at low priority"
		}
	case Delete:
		s += " " + strings.ToLower(string(a.Propagation))
	case Unfinalize:
		s += " " + a.Finalizer
	}
	if a.Why != "" {
		s += ": " + a.Why
	}
	return s
}

// Unresolvable is why a reference cannot be resolved: what a user has to repair.
type Unresolvable uint8

// The reasons. Resolvable is none.
const (
	Resolvable    Unresolvable = iota
	UnservedKind               // no such apiVersion and kind
	AmbiguousKind              // several resources serve this apiVersion and kind
	Misplaced                  // a cluster-scoped object names a namespaced owner
	Unreadable                 // the owner cannot be read: forbidden, or its API does not answer
	TooManyOwners              // the object has more owner references than are followed
)

// String returns the owner as people name it.
func (c Claim) String() string { return words.Printable(c.Kind) + " " + nsName(c.place(), c.Name) }

// place returns the namespace in which the claimed owner would be.
func (c Claim) place() string {
	if c.Namespaced {
		return c.Namespace
	}
	return ""
}

// nsName returns a name as it is shown. It is made printable, since users choose it.
func nsName(ns, name string) string {
	if ns != "" {
		name = ns + "/" + name
	}
	return words.Printable(name)
}

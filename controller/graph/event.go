package graph

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is what the graph keeps of an object: who it is, who owns it, and how it is ending.
type Object struct {
	Kind            schema.GroupResource
	UID             types.UID
	Namespace       string
	Name            string
	ResourceVersion string
	Owners          []metav1.OwnerReference
	Unfollowed      int // how many owner references it has beyond those, which are the first MostOwners
	Finalizers      []string
	Deleting        bool // has a deletionTimestamp
}

// MostOwners is how many owner references of an object are followed. A client can write 28,000 into
// one object, and each costs a lookup, memory and time; no controller needs more than a few. An
// object with more is kept, whatever becomes of its owners, and its references are not written.
const MostOwners = 256

// ObjectOf returns what the graph keeps of an object of a kind, from its metadata.
func ObjectOf(kind schema.GroupResource, m *metav1.PartialObjectMetadata) *Object {
	owners := m.OwnerReferences
	if len(owners) > MostOwners {
		owners = slices.Clone(owners[:MostOwners]) // the others take megabytes
	}
	return &Object{
		Kind: kind, UID: m.UID, Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion,
		Owners: owners, Unfollowed: len(m.OwnerReferences) - len(owners),
		Finalizers: m.Finalizers, Deleting: m.DeletionTimestamp != nil,
	}
}

// Event is something that happened outside: in the cluster, or to a request of ours.
// The set is closed: the types below.
type Event interface{ apply(g *Graph) }

type (
	// Serving replaces the picture of which kinds the cluster serves. Kinds that are missing stop
	// resolving at once; their nodes stay until Stopped, because deletions may still be on their
	// way.
	Serving struct{ Resources []Resource }

	// Observed is an object as a list or a watch showed it. Events of one kind must arrive in the
	// order of its watch; nothing is required between kinds.
	Observed struct{ Object *Object }

	// Gone is a deletion that the watch of the kind reported. It proves absence.
	Gone struct {
		Kind schema.GroupResource
		UID  types.UID
	}

	// Unlisted is an object that the next list of its kind would not show: what ListEnds does to
	// one object. It proves nothing.
	Unlisted struct {
		Kind schema.GroupResource
		UID  types.UID
	}

	// ListBegins opens a complete list of a kind: Observed for each object, then ListEnds.
	ListBegins struct{ Kind schema.GroupResource }

	// ListEnds closes it. Nodes of the kind that the list did not show leave the graph; unlike Gone
	// this does not prove that they are absent, so references to them are looked up.
	ListEnds struct{ Kind schema.GroupResource }

	// ListFailed says why a kind could not be listed. It changes nothing once the kind was listed.
	ListFailed struct {
		Kind      schema.GroupResource
		Forbidden bool
		Reason    string
	}

	// ListSlow says that the first list of a kind takes long. It changes nothing once that has
	// ended or failed.
	ListSlow struct {
		Kind   schema.GroupResource
		Reason string
	}

	// FellBehind says that a kind which was listed cannot be followed now: there may be objects of
	// it that the graph has not seen. A list ends that.
	FellBehind struct {
		Kind   schema.GroupResource
		Reason string
	}

	// NotFound is a live, consistent read of an object that the graph has: an API server that knows
	// the kind has none of the name, or another under it. It proves absence as Gone does, unless
	// the API server's history went back since the read was begun: History is what Graph.History
	// said then.
	NotFound struct {
		Kind    schema.GroupResource
		UID     types.UID
		History uint32
	}

	// Rewound says that the API server's history went back, because its storage was restored from a
	// backup. What was deleted may be there again under the same uid: all that was seen is
	// forgotten, and all proofs of absence with it. Every kind is to be listed again. Watches from
	// before must have ended.
	Rewound struct{ Reason string }

	// KindRewound says that the history of one kind went back, because an aggregated API keeps it
	// in a storage of its own and that was restored from a backup. Owners of the kind that were
	// absent may be there again: proofs of their absence are forgotten, and answers under way prove
	// nothing. The kind is to be Stopped and listed again.
	KindRewound struct{ Kind schema.GroupResource }

	// Stopped ends the watch of a kind. Its nodes leave the graph and prove nothing: owners to
	// which they referred are not released before the kind is listed again, or its definition goes.
	Stopped struct{ Kind schema.GroupResource }

	// LookupStarted marks the lookup of a claim as under way: no other worker needs to ask.
	LookupStarted struct{ Claim Claim }

	// LookupAnswered is the answer to a lookup.
	LookupAnswered struct {
		Claim  Claim
		Answer Answer
		Reason string // with Unanswered and Denied: why
	}

	// Accepted says that the API server carried out an action. Until the watch shows the result,
	// the object is left alone.
	Accepted struct{ Action Action }

	// Protected says that an object is released from owners that are gone or wait for it, and not
	// deleted, because a policy refuses its delete or a person has decided so: Why says which. It
	// counts for the version of the object that the decision was about.
	Protected struct {
		Object Ref
		Why    string
	}

	// Collecting says that an object is about to be deleted because of an inference, which its
	// dependents inherit.
	Collecting struct {
		Kind      schema.GroupResource
		UID       types.UID
		Inference Inference
	}

	// Remembered says that a process before this one saw an owner deleted, and recorded how many
	// references to it were left. It does not prove the owner absent. It comes when every kind has
	// been listed.
	Remembered struct {
		Kind       schema.GroupResource
		UID        types.UID
		References int
	}

	// Ruled says how the deletion of an object goes on that a finalizer of ours holds: as if it had
	// been asked for with Propagation. What the object's own finalizers ask for comes first. A
	// ruling counts while the object carries Finalizer. An empty Propagation takes it back: the
	// object is held.
	Ruled struct {
		Kind        schema.GroupResource
		UID         types.UID
		Finalizer   string
		Propagation metav1.DeletionPropagation
	}

	// Holds names the finalizer of ours that holds foreground deletions, too. One that an object's
	// own finalizers ask for then begins only when it is Ruled, because dependents may have to be
	// released first. Without Holds it begins at once.
	Holds struct{ Finalizer string }

	// Draining starts or stops the reports of changes to what a namespace holds; see
	// ChangedNamespaces.
	Draining struct {
		Namespace string
		On        bool
	}

	// Recheck is a round of a clock that the edge keeps, counting from 1. Failed lookups are tried
	// again after 1, 2, 4 … 64 rounds, owners that only a lookup found after 64, 128 … 1024, and
	// requests whose effect never showed every 64. No more than 64 failed lookups and 16 found
	// owners become due in one round.
	Recheck struct{ Round uint64 }
)

// Answer is what a live, consistent read said about a claim.
type Answer uint8

// The answers. Only an API server that knows the kind and does not know the object proves Absent;
// an unknown path, a refusal or a time-out is Unanswered. Denied is the one refusal that may stay
// for ever: we may not read objects of the kind.
const (
	Unanswered Answer = iota
	Present
	Absent
	Denied
)

var answerNames = [...]string{"unanswered", "present", "absent", "denied"}

func (a Answer) String() string { return answerNames[a] }

// Claim is an owner as a dependent wrote it, with the namespace that the dependent implies.
// It is comparable.
type Claim struct {
	APIVersion string
	Kind       string
	Namespace  string // the dependent's: "" for a cluster-scoped dependent
	Name       string
	UID        types.UID

	// Resource and Namespaced say where to look.
	Resource   schema.GroupResource
	Namespaced bool
	// Lists is how many lists of the kind had ended when the lookup was asked for. An answer from
	// before a list says nothing about what came after it.
	Lists uint32
	// History is how often the API server's history had gone back by then. An answer from an earlier
	// history proves nothing.
	History uint32
}

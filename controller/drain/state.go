package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Wave is a set of objects that are deleted at the same time, as a DrainPolicy or Kubernetes orders
// them. The caller decides which objects belong to it.
type Wave struct {
	Name string
	// Timeout is how long the wave may take; 0 means without limit.
	Timeout time.Duration
	// Proceed begins the next wave after Timeout. What is left goes on terminating, and holds only the
	// namespace itself. Without Proceed the wave goes on waiting, and says so.
	Proceed bool
}

// DefaultWaves returns Kubernetes' own order: pods, then the rest (RB 7.12).
func DefaultWaves() []Wave { return []Wave{{Name: "pods"}, {Name: "rest"}} }

// DefaultWave returns the index in DefaultWaves of the wave of a kind.
func DefaultWave(kind schema.GroupResource) int {
	if kind == (schema.GroupResource{Resource: "pods"}) {
		return 0
	}
	return 1
}

// Kind is what is known of the objects of one kind in one wave. A kind whose objects are in several
// waves has one Kind for each.
type Kind struct {
	Kind schema.GroupResource
	Wave int // index in State.Waves
	// Complete: the counts come from the graph, which follows the kind. Listed: they come from a live
	// list made after the namespace began to terminate.
	Complete, Listed bool

	Total, Terminating int

	// Finalizers counts the objects that carry each finalizer, from a live list, where the graph does
	// not count them.
	Finalizers map[string]int

	// Tried: a delete was sent for the kind's objects in this pass. Those that still do not terminate
	// have to be waited for.
	Tried bool
	// Refused is why the last delete failed, and Unreadable why the last list did; empty if they did
	// not.
	Refused, Unreadable string
	// First is one of the objects that are left, always the same one. It is named when the wave waits.
	First *Object
}

// Object is an object that a wave waits for.
type Object struct {
	Namespace, Name string
	Terminating     bool
	Finalizers      []string
}

// State is all that the next step depends on.
type State struct {
	Waves []Wave
	// Current is the wave that was under way at the last look, and Age for how long.
	Current int
	Age     time.Duration

	Kinds []Kind // namespaced and deletable, sorted by kind and wave
	// Finalizers counts the objects that carry each finalizer, as far as the graph has them.
	Finalizers map[string]int
	// Discovered: discovery has succeeded since the namespace began to terminate. DiscoveryFailure is
	// why the last attempt failed; empty if it did not.
	Discovered       bool
	DiscoveryFailure string
	// Undiscovered are the API groups that do not answer and whose kinds are not known.
	Undiscovered []string
	// Unrecorded is why nothing may be deleted yet, because it has to be recorded first; empty if it
	// may.
	Unrecorded string
	// Home: this is the namespace that Weir itself runs in.
	Home bool
	// Companion: the cluster's own namespace controller proves that nothing is left, and finalizes.
	Companion bool
}

// Verb is the kind of a step.
type Verb uint8

// The verbs.
const (
	List Verb = iota
	Delete
	Wait
	Finalize
	Discover // ask again which kinds there are; without an answer, it is a Wait
)

func (v Verb) String() string {
	return [...]string{"list", "delete", "wait", "finalize", "discover"}[v]
}

// Step is the next thing to do. The kinds of a List or Delete can be handled in parallel.
type Step struct {
	Verb  Verb
	Kinds []schema.GroupResource
	// Wave is the wave whose objects are deleted or waited for.
	Wave int
	// Current is the wave under way from now on. Later waves are held.
	Current int
	Why     string
	// TimedOut: a wave has taken longer than its Timeout.
	TimedOut bool
	// Failed: the drain cannot go on, because a request other than one about content was refused or
	// failed. Next never sets it.
	Failed bool
	// Recheck is the time after which the step may be another although nothing has changed; 0 for
	// never.
	Recheck time.Duration
}

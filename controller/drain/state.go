package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Wave is what goes at the same time: by a DrainPolicy, or as Kubernetes has it. Which objects go
// with it is said by whoever orders them.
type Wave struct {
	Name string
	// Timeout is how long the wave may take; 0 is as long as it takes.
	Timeout time.Duration
	// Proceed begins the next wave after Timeout; what is left goes on terminating, and holds only
	// the namespace itself. Otherwise the wave goes on waiting, and says so.
	Proceed bool
}

// DefaultWaves is Kubernetes' own order: pods, then the rest (RB 7.12).
func DefaultWaves() []Wave { return []Wave{{Name: "pods"}, {Name: "rest"}} }

// DefaultWave is the wave of DefaultWaves that a kind goes with.
func DefaultWave(kind schema.GroupResource) int {
	if kind == (schema.GroupResource{Resource: "pods"}) {
		return 0
	}
	return 1
}

// Kind is what is known of the objects of one kind in the namespace that go with one wave. A kind
// whose objects go with several is there once for each.
type Kind struct {
	Kind schema.GroupResource
	Wave int // index in State.Waves
	// Complete: the counts come from the graph, and the graph follows the kind, or did until its
	// API was not available any more. Listed: they come from a live list made after the namespace
	// began to terminate.
	Complete, Listed bool
	// Blind kinds can be deleted but not listed: what is left of them cannot be known.
	Blind bool

	Total, Terminating int

	// Finalizers counts those of them that carry each, where the graph does not: a live list showed
	// them.
	Finalizers map[string]int

	// Tried: objects were deleted in this pass. What still does not terminate will have to wait.
	Tried bool
	// Refused is why the last delete failed, Unreadable why the last list did; empty if they did
	// not.
	Refused, Unreadable string
	// Down: the list failed, and the cluster says of the API that it is not available: requests are
	// not passed on to it. No client can have made anything in it since it went down, so what the
	// graph has seen until then is all there is.
	Down bool
	// First is one of the objects that are left, the same each time: what to name when the wave
	// waits.
	First *Object
}

// Object is one of those that a wave waits for.
type Object struct {
	Namespace, Name string
	Terminating     bool
	Finalizers      []string
}

// State is everything that the next step depends on.
type State struct {
	Waves []Wave
	// Current is the wave that was under way when this was last looked at, and Age how long it has
	// been.
	Current int
	Age     time.Duration

	Kinds []Kind // namespaced and deletable, sorted by kind and wave
	// Finalizers counts the objects that carry each, as far as the graph has them.
	Finalizers map[string]int
	// Discovered: which kinds there are was asked for after the namespace began to terminate, and
	// answered. DiscoveryFailure is why the last attempt failed; empty if it did not.
	Discovered       bool
	DiscoveryFailure string
	// Undiscovered are API groups that do not answer and whose kinds are not known.
	Undiscovered []string
	// Arriving is whose requests may still create content, because they were accepted before the
	// namespace began to terminate; empty if no webhook's may. ArrivingFor is how long to wait for
	// them.
	Arriving    string
	ArrivingFor time.Duration
	// Unrecorded is why nothing of it may go yet: it is to be recorded before. Empty: it may.
	Unrecorded string
	// Home: it is the namespace that Weir itself runs in.
	Home bool
	// Companion: the cluster's own controller makes sure that nothing is left, and finalizes.
	Companion bool
}

// Verb is what kind of step comes next.
type Verb uint8

// The verbs.
const (
	List Verb = iota
	Delete
	Wait
	Finalize
	Discover // ask again which kinds there are; as long as there is no answer, it is a Wait
)

func (v Verb) String() string {
	return [...]string{"list", "delete", "wait", "finalize", "discover"}[v]
}

// Step is the next thing to do. List and Delete name kinds that can be done in parallel.
type Step struct {
	Verb  Verb
	Kinds []schema.GroupResource
	// Wave is whose objects are to be deleted, or waited for.
	Wave int
	// Current is the wave under way from here on: later ones are held.
	Current int
	Why     string
	// TimedOut: a wave has taken longer than it may.
	TimedOut bool
	// Failed: it cannot be gone on with, because a request that is none about content was refused
	// or failed. Next never says so.
	Failed bool
	// Recheck is after what time this step is another although nothing has changed; 0 for never.
	Recheck time.Duration
}

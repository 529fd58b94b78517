package drain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is what is known of one kind's objects in the namespace.
type Kind struct {
	Kind schema.GroupResource
	// Complete: the counts come from the graph, and the graph follows the kind. Listed: they come from a
	// live list made after the namespace began to terminate.
	Complete, Listed bool
	// Blind kinds can be deleted but not listed: what is left of them cannot be known.
	Blind bool

	Total, Terminating int

	// Tried: objects were deleted in this pass. What still does not terminate will have to wait.
	Tried bool
	// Refused is why the last delete failed, Unreadable why the last list did; empty if they did not.
	Refused, Unreadable string
}

// Wave is a set of kinds that goes together. The wave without kinds takes all that no other wave names.
type Wave struct {
	Name  string
	Kinds []schema.GroupResource
}

// DefaultWaves is Kubernetes' own order: pods, then the rest (RB 7.12).
func DefaultWaves() []Wave {
	return []Wave{{Name: "pods", Kinds: []schema.GroupResource{{Resource: "pods"}}}, {Name: "rest"}}
}

// State is everything that the next step depends on.
type State struct {
	Waves []Wave
	Kinds []Kind // namespaced and deletable, sorted
	// Finalizers counts the objects that carry each.
	Finalizers map[string]int
	// Undiscovered are API groups that do not answer and whose kinds are not known.
	Undiscovered []string
}

// Verb is what kind of step comes next.
type Verb uint8

// The verbs.
const (
	List Verb = iota
	Delete
	Wait
	Finalize
)

func (v Verb) String() string { return [...]string{"list", "delete", "wait", "finalize"}[v] }

// Step is the next thing to do. List and Delete name kinds that can be done in parallel.
type Step struct {
	Verb  Verb
	Kinds []schema.GroupResource
	// Wave is the index of the wave that is under way, len(Waves) when all are over.
	Wave int
	Why  string
}

// Next decides the next step.
func Next(s State) Step {
	for i, kinds := range s.byWave() {
		if step, over := nextInWave(kinds); !over {
			step.Wave = i
			step.Why = fmt.Sprintf("wave %d of %d (%s): %s", i+1, len(s.Waves), s.Waves[i].Name, step.Why)
			return step
		}
	}
	end := Step{Wave: len(s.Waves)}
	if len(s.Undiscovered) > 0 {
		end.Verb, end.Why = Wait, "API groups do not answer and may hold content: "+strings.Join(s.Undiscovered, ", ")
		return end
	}
	for _, k := range s.Kinds {
		if !k.Listed && !k.Blind {
			end.Kinds = append(end.Kinds, k.Kind)
		}
	}
	if len(end.Kinds) > 0 {
		end.Verb, end.Why = List, "making sure that nothing is left"
		return end
	}
	end.Verb, end.Why = Finalize, "nothing is left"
	return end
}

// byWave sorts the kinds into their waves.
func (s State) byWave() [][]Kind {
	waves := make([][]Kind, len(s.Waves))
	for _, k := range s.Kinds {
		at := -1
		for i, w := range s.Waves {
			if len(w.Kinds) == 0 && at < 0 || slices.Contains(w.Kinds, k.Kind) {
				at = i
				if len(w.Kinds) > 0 {
					break
				}
			}
		}
		if at < 0 {
			at = len(waves) - 1 // no wave takes the rest: it goes last
		}
		waves[at] = append(waves[at], k)
	}
	return waves
}

func nextInWave(kinds []Kind) (step Step, over bool) {
	var list, remove []schema.GroupResource
	var left []string
	for _, k := range kinds {
		switch {
		case k.Blind:
			if !k.Tried {
				remove = append(remove, k.Kind)
			}
			continue
		case !k.Complete && !k.Listed:
			list = append(list, k.Kind)
			continue
		case k.Unreadable != "":
			left = append(left, fmt.Sprintf("%s cannot be listed: %s", k.Kind, k.Unreadable))
			continue
		case k.Total > k.Terminating && !k.Tried:
			remove = append(remove, k.Kind)
		}
		if k.Total > 0 {
			left = append(left, waitingFor(k))
		}
	}
	switch {
	case len(list) > 0:
		return Step{Verb: List, Kinds: list, Why: "counting what the graph does not follow"}, false
	case len(remove) > 0:
		return Step{Verb: Delete, Kinds: remove, Why: "deleting"}, false
	case len(left) > 0:
		return Step{Verb: Wait, Why: "waiting for " + strings.Join(left, "; ")}, false
	}
	return Step{}, true
}

func waitingFor(k Kind) string {
	s := fmt.Sprintf("%d %s", k.Total, k.Kind)
	if k.Terminating > 0 {
		s += fmt.Sprintf(" (%d terminating)", k.Terminating)
	}
	if k.Refused != "" {
		s += ": " + k.Refused
	}
	return s
}

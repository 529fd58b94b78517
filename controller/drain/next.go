package drain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// homeStays is why nothing is deleted in the namespace that Weir runs in: Weir's own pods would go,
// and nobody would finish the deletion.
const homeStays = "nothing is deleted: Weir runs in this namespace, and without it neither this deletion nor any " +
	"other would end. To uninstall it, have kube-controller-manager run its own garbage collector and namespace " +
	"controller, and run weir release --stop-controller NAMESPACE/weir-controller: then the namespace is deleted"

// Next returns the next step.
func Next(s State) Step {
	if why := s.stays(); why != "" {
		return Step{Verb: Wait, Current: s.Current, Why: why}
	}
	var behind []string // what the waves that timed out have left
	for i, kinds := range s.byWave() {
		step, over := nextInWave(kinds)
		if over {
			continue
		}
		step.Wave, step.Current = i, i
		if s.leftBehind(i) {
			if step.Verb == Wait {
				behind = append(behind, fmt.Sprintf("%s timed out after %s and left %s", s.name(i), s.Waves[i].Timeout, step.Why))
				continue
			}
			step.Current = max(i, s.Current)
		}
		return s.explain(step, behind)
	}
	end := Step{Wave: len(s.Waves) - 1, Current: len(s.Waves) - 1}
	if len(behind) > 0 {
		end.Verb, end.TimedOut = Wait, true
		end.Why = "all waves are over, but " + strings.Join(behind, "; ")
		return end
	}
	if s.Companion {
		end.Verb, end.Why = Finalize, "nothing is left that was seen"
		return end
	}
	if !s.Discovered {
		end.Verb, end.Why = Discover, "waiting for the API server to say which kinds there are, since the namespace began "+
			"to terminate"
		if s.DiscoveryFailure != "" {
			end.Why += ": " + s.DiscoveryFailure
		}
		return end
	}
	if len(s.Undiscovered) > 0 {
		end.Verb, end.Why = Wait, "API groups do not answer and may hold content: "+strings.Join(s.Undiscovered, ", ")
		return end
	}
	for _, k := range s.Kinds {
		if !k.Listed && !slices.Contains(end.Kinds, k.Kind) {
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

// stays returns why nothing in the namespace may be deleted yet; empty if it may.
func (s State) stays() string {
	if s.Home && !s.Companion {
		return homeStays
	}
	return s.Unrecorded
}

// leftBehind reports whether a wave has timed out and does not hold up later waves. Only a wave
// with Proceed is ever left before it is over; any other holds up all later ones, even if a later
// one was under way.
func (s State) leftBehind(wave int) bool {
	w := s.Waves[wave]
	return w.Proceed && w.Timeout > 0 && (wave < s.Current || wave == s.Current && s.Age >= w.Timeout)
}

// explain completes a step of a wave: its whole Why, Recheck and TimedOut.
func (s State) explain(step Step, behind []string) Step {
	w := s.Waves[step.Wave]
	late := ""
	if step.Verb == Wait && w.Timeout > 0 {
		age := s.Age
		if step.Current != s.Current {
			age = 0 // the wave begins now
		}
		if age < w.Timeout {
			step.Recheck = w.Timeout - age
		} else {
			step.TimedOut, late = true, fmt.Sprintf(" has timed out after %s", w.Timeout)
		}
	}
	why := step.Why
	if step.Verb == Wait {
		why = "waiting for " + why
	}
	step.Why = fmt.Sprintf("%s%s: %s", s.name(step.Wave), late, why)
	if step.Verb == Wait && len(behind) > 0 {
		step.Why += "; " + strings.Join(behind, "; ")
	}
	return step
}

func (s State) name(wave int) string {
	return fmt.Sprintf("wave %d of %d (%s)", wave+1, len(s.Waves), s.Waves[wave].Name)
}

// byWave sorts the kinds into their waves.
func (s State) byWave() [][]Kind {
	waves := make([][]Kind, len(s.Waves))
	for _, k := range s.Kinds {
		waves[k.Wave] = append(waves[k.Wave], k)
	}
	return waves
}

// nextInWave returns the next step of one wave. The Why of a Wait is only what it waits for.
func nextInWave(kinds []Kind) (step Step, over bool) {
	var list, remove []schema.GroupResource
	var left []string
	for _, k := range kinds {
		switch {
		case !k.Complete && !k.Listed:
			list = append(list, k.Kind)
			continue
		case k.Unreadable != "":
			left = append(left, fmt.Sprintf("%s, which cannot be listed: %s", k.Kind, k.Unreadable))
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
		return Step{Verb: Wait, Why: strings.Join(left, "; ")}, false
	}
	return Step{}, true
}

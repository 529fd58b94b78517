package shadow

import (
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// mostBetween bounds what one look adds to the compared time: a process that did not run for longer
// compared nothing meanwhile.
const mostBetween = 5 * sweepEvery

// sight is for how long everything was seen that is compared.
type sight struct {
	compared time.Duration
	last     time.Time // the last look, if everything was seen then; else zero
	unseen   []report.Unseen
}

// look records what is not seen now. ready reports whether all else is.
func (s *sight) look(now time.Time, ready bool, unseen []report.Unseen) {
	s.unseen = unseen
	if !ready || len(unseen) > 0 {
		s.last = time.Time{}
		return
	}
	if !s.last.IsZero() {
		s.compared += min(now.Sub(s.last), mostBetween) // by the monotonic clock
	}
	s.last = now
}

// notSeen returns the kinds that should be seen and are not, and the group versions whose kinds are
// not known. Ready does not cover them: Weir works without.
func notSeen(served []graph.KindStats, undiscovered []string) (out []report.Unseen) {
	for _, k := range served {
		if !k.Served || !k.Collected || k.State == graph.Synced {
			continue
		}
		why := "it is not listed yet"
		switch k.State {
		case graph.Behind:
			why = "its watch is broken: " + k.Reason
		case graph.Failing:
			why = "it cannot be listed: " + k.Reason
		case graph.Forbidden:
			why = "Weir may not list it: " + k.Reason
		}
		out = append(out, report.Unseen{What: k.GroupResource().String(), Why: bounded(why, mostName)})
	}
	for _, group := range undiscovered {
		out = append(out, report.Unseen{What: group, Why: "the group does not answer, and which kinds it has is not known"})
	}
	return out
}

package shadow

import (
	"time"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

const (
	// mostBetween bounds what one look adds to the compared time: a process that did not run for
	// longer compared nothing meanwhile.
	mostBetween = 5 * sweepEvery
	mostUnseen  = 200 // of them are named
)

// sight is for how long everything was seen that is compared.
type sight struct {
	compared time.Duration
	last     time.Time // the last look; zero if there was none
	unseen   []report.Unseen
	// hidden is what is not seen, and how much was compared when it was last seen. Once it is seen
	// again, what was compared without it does not count. Until then it counts for users who accept
	// that it is not seen.
	hidden map[string]time.Duration
}

// look records what is not seen now. ready reports whether all else is.
func (s *sight) look(now time.Time, ready bool, unseen []report.Unseen) {
	hidden := make(map[string]time.Duration, len(unseen))
	for _, u := range unseen {
		had, already := s.hidden[u.What]
		if !already {
			had = s.compared
		}
		hidden[u.What] = had
	}
	back := false
	for what, had := range s.hidden {
		if _, still := hidden[what]; !still {
			back, s.compared = true, min(s.compared, had)
		}
	}
	for what, had := range hidden {
		hidden[what] = min(had, s.compared)
	}
	if ready && !back && !s.last.IsZero() {
		s.compared += min(now.Sub(s.last), mostBetween) // by the monotonic clock
	}
	s.last, s.unseen, s.hidden = now, unseen, hidden
}

// into copies the times into a report.
func (s *sight) into(r *report.Report) {
	r.ComparedSeconds = s.compared.Seconds()
	for _, u := range s.unseen[:min(len(s.unseen), mostUnseen)] {
		u.Why, u.ComparedSeconds = bounded(u.Why, mostWhat), s.hidden[u.What].Seconds()
		r.Unseen = append(r.Unseen, u)
	}
	r.MoreUnseen = len(s.unseen) - len(r.Unseen)
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
		out = append(out, report.Unseen{What: k.GroupResource().String(), Why: why})
	}
	for _, group := range undiscovered {
		out = append(out, report.Unseen{What: group, Why: "the group does not answer, and which kinds it has is not known"})
	}
	return out
}

package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

const mostSpaces = 10_000

// space is a namespace that is being deleted, or was.
type space struct {
	step  drain.Step
	left  int       // objects in it that do not terminate yet
	empty bool      // there is nothing in it
	moved time.Time // when step or left last changed
	read  bool      // the namespace was read because nothing moved
	tried time.Time // when reading it last failed
	done  bool      // it is counted already

	past   past
	differ *report.Difference // nil if there is none, or it is over
	gone   bool
	at     time.Time // when it went
}

// whatNext returns Weir's next step in a namespace that is being deleted, as far as the graph shows
// its content. Before Weir lets a namespace go, it proves by lists that nothing is left, also of
// kinds that the graph does not follow; shadow mode trusts the graph.
func whatNext(served []graph.KindStats, inv graph.Inventory, undiscovered []string) drain.Step {
	state := drain.State{Waves: drain.DefaultWaves(), Discovered: true, Undiscovered: undiscovered}
	for _, k := range served {
		if !k.Served || !k.Namespaced || !k.Deletable || !k.Collected {
			continue
		}
		gr := k.GroupResource()
		kind := drain.Kind{Kind: gr, Wave: drain.DefaultWave(gr), Complete: true, Listed: true}
		if k.State == graph.Failing || k.State == graph.Forbidden {
			kind.Unreadable = k.Reason
		}
		if i := slices.IndexFunc(inv.Kinds, func(c graph.KindCount) bool { return c.Kind == gr }); i >= 0 {
			kind.Total, kind.Terminating = inv.Kinds[i].Total, inv.Kinds[i].Terminating
		}
		state.Kinds = append(state.Kinds, kind)
	}
	return drain.Next(state)
}

// Ending records that a namespace is being deleted, Weir's next step in it, and its content.
func (l *Ledger) Ending(now time.Time, name string, step drain.Step, inv graph.Inventory) {
	if s := l.spaces[name]; s != nil && s.gone { // another of that name
		l.Returned(now, name)
	}
	switch {
	case l.spaces[name] != nil:
	case len(l.spaces) >= mostSpaces:
		l.forgotten++
	default:
		l.spaces[name] = &space{moved: now}
	}
	l.Looked(now, name, step, inv)
}

// Looked records Weir's next step in a namespace that Ending has recorded, and its content.
func (l *Ledger) Looked(now time.Time, name string, step drain.Step, inv graph.Inventory) {
	s := l.spaces[name]
	if s == nil || s.gone {
		return
	}
	left := 0
	for _, k := range inv.Kinds {
		left += k.Total - k.Terminating
	}
	if step.Verb != s.step.Verb || left != s.left {
		s.moved, s.read = now, false
		s.past.add(now, fmt.Sprintf("%s; %s not terminate yet", step.Why,
			words.Count(left, "object in it does", "objects in it do")))
		s.ends(now)
	}
	s.step, s.left, s.empty = step, left, len(inv.Kinds) == 0
}

// difference fills in what all differences about namespaces share. Their history ends here, or with
// ends.
func (s *space) difference(d *report.Difference) *report.Difference {
	d.Verb = report.Drain
	s.past.into(d)
	return d
}

// ends records that the difference, if there is one, is over.
func (s *space) ends(now time.Time) {
	if s.differ != nil && s.differ.Ended == nil {
		s.differ.Ended = &now
		s.past.into(s.differ)
	}
	s.differ = nil
}

func (l *Ledger) finish(s *space, how string) {
	if !s.done {
		l.count(report.Drain, how)
	}
	s.done = true
}

// Went records that a namespace is gone, in the state of the last look.
func (l *Ledger) Went(now time.Time, name string) {
	s := l.spaces[name]
	if s == nil || s.gone {
		return
	}
	s.past.add(now, "it went")
	s.ends(now)
	s.gone, s.at = true, now
	switch {
	case s.done:
	case s.step.Verb == drain.Finalize:
		l.drains.add(now.Sub(s.moved))
		l.finish(s, report.Done)
	case s.step.Verb == drain.Wait && s.empty:
		l.finish(s, report.Kept)
		l.differ(s.difference(&report.Difference{At: now, What: report.Kept, Object: spaceRef(name), Why: s.step.Why,
			Ended: &now}))
	}
}

// Left records what the graph has in a namespace that is gone. At first, deletes may still be on
// their way.
func (l *Ledger) Left(now time.Time, name string, inv graph.Inventory) {
	s := l.spaces[name]
	if s == nil || !s.gone {
		return
	}
	if len(inv.Kinds) == 0 {
		l.finish(s, report.Sooner)
	}
	if now.Sub(s.at) < l.late {
		return
	}
	delete(l.spaces, name)
	if len(inv.Kinds) == 0 {
		return
	}
	l.finish(s, report.Kept)
	l.differ(s.difference(&report.Difference{At: s.at, What: report.Kept, Object: spaceRef(name),
		Why: "it holds " + content(inv), Ended: &now}))
}

// content returns the content by kind.
func content(inv graph.Inventory) string {
	var parts []string
	for _, k := range inv.Kinds {
		parts = append(parts, fmt.Sprintf("%d %s", k.Total, k.Kind))
	}
	return strings.Join(parts, ", ")
}

func spaceRef(name string) string { return kinds.Namespaces.Resource + " " + name }

// Returned records that a namespace of a name exists again. What is left of an earlier one cannot
// be told apart.
func (l *Ledger) Returned(now time.Time, name string) {
	if s := l.spaces[name]; s != nil {
		s.past.add(now, "there is another of its name")
		s.ends(now)
		l.finish(s, report.Sooner)
		delete(l.spaces, name)
	}
}

// Stuck returns the namespaces in which nothing has moved for long although Weir would act. They
// are to be read. Those whose last attempt is oldest come first, so that namespaces that cannot be
// read do not keep others from it.
func (l *Ledger) Stuck(now time.Time) (names []string) {
	for name, s := range l.spaces {
		if !s.gone && !s.read && (s.step.Verb == drain.Finalize || s.step.Verb == drain.Delete) &&
			now.Sub(s.moved) >= l.late {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(l.spaces[a].tried.Compare(l.spaces[b].tried), cmp.Compare(a, b))
	})
	return names
}

// Spaces returns the namespaces to look at: those that are being deleted, and those that went a
// short time ago.
func (l *Ledger) Spaces() (ending, gone []string) {
	for name, s := range l.spaces {
		if s.gone {
			gone = append(gone, name)
		} else {
			ending = append(ending, name)
		}
	}
	return ending, gone
}

// Reading is the result of a live read of a namespace.
type Reading struct {
	There   bool
	Held    bool   // the namespace controller has finished, and other finalizers hold it
	Refused string // why the namespace controller could not delete its content
	Says    string // its other conditions
}

// Read records a live read of a namespace in which nothing moves. why is the reason for a
// difference, if there is one.
func (l *Ledger) Read(now time.Time, name string, r Reading) (why string) {
	s := l.spaces[name]
	if s == nil || s.gone || s.read {
		return ""
	}
	s.read = true
	again := s.differ != nil
	s.ends(now)
	switch {
	case !r.There:
		l.Went(now, name)
		return ""
	case r.Held:
		l.finish(s, report.Done)
		return ""
	case s.step.Verb == drain.Delete && r.Refused != "":
		l.count(report.Drain, report.Refused)
		return ""
	}
	why = s.step.Why
	if said := strings.TrimSpace(r.Refused + " " + r.Says); said != "" {
		why += "; the namespace controller says: " + said
	}
	if !again {
		l.count(report.Drain, report.Late)
	}
	return l.standsStill(now, name, s, why)
}

// Unread records that a namespace in which nothing moves could not be read. If that lasts as long
// as a namespace may stand still, it is a difference, because why the namespace stays is not known.
// why is the reason for one.
func (l *Ledger) Unread(now time.Time, name, cause string) (why string) {
	s := l.spaces[name]
	if s == nil || s.gone || s.read {
		return ""
	}
	s.tried = now
	if s.differ != nil || now.Sub(s.moved) < 2*l.late {
		return ""
	}
	why = s.step.Why + "; why it stays is not known: " + cause
	l.count(report.Drain, report.Late)
	return l.standsStill(now, name, s, why)
}

// standsStill records a difference, and returns its reason as it is kept.
func (l *Ledger) standsStill(now time.Time, name string, s *space, why string) string {
	s.past.add(now, report.Late)
	s.differ = s.difference(&report.Difference{At: s.moved, What: report.Late, Object: spaceRef(name), Why: why})
	l.differ(s.differ)
	return s.differ.Why
}

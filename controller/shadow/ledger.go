package shadow

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/shadow/report"
)

// Bounds of what is remembered. Past them things are counted only, and the report says so.
const (
	mostOpen        = 100_000
	mostDifferences = 1000
	mostLags        = 10_000 // of the last deletes
	mostLooks       = 5000   // at what is open, at once: others have their turn the next time
)

// Ledger is what was decided, and what became of it.
type Ledger struct {
	Since time.Time
	late  time.Duration

	open        map[types.UID]*decision
	spaces      map[string]*space         // by name
	counts      map[string]map[string]int // by verb, and what became of it
	unasked     map[string]int            // of deletes that were not decided
	deletes     lags
	drains      lags // of namespaces, since nothing was left in them
	differences []*report.Difference
	more        int // differences that are only counted
	forgotten   int // decisions that there was no room for
}

type decision struct {
	action graph.Action
	since  time.Time
	differ *report.Difference // nil: it is not late
	late   bool
}

// NewLedger begins one, in which a decision is late after a time.
func NewLedger(now time.Time, late time.Duration) *Ledger {
	return &Ledger{Since: now, late: late, open: map[types.UID]*decision{}, spaces: map[string]*space{}, counts: map[string]map[string]int{}, unasked: map[string]int{}}
}

// Decided takes in what is decided about an object now, and how the graph has it.
func (l *Ledger) Decided(now time.Time, uid types.UID, a graph.Action, v graph.View, there bool) {
	d := l.open[uid]
	if d != nil && there && a.Verb == d.action.Verb {
		d.action = a // of the version that is there now
		return
	}
	if d != nil {
		l.close(now, uid, d, outcome(d, v, there))
	}
	if !a.Request() || a.Verb == graph.Look || !there {
		return
	}
	if len(l.open) >= mostOpen {
		l.forgotten++
		return
	}
	l.open[uid] = &decision{action: a, since: now}
}

// outcome is what became of a decision that does not stand any more.
func outcome(d *decision, v graph.View, there bool) string {
	switch {
	case !there:
		if d.action.Verb == graph.Release || d.action.Verb == graph.Unblock {
			return report.Withdrawn // there is nothing left to release
		}
		return report.Done
	case d.action.Verb == graph.Delete && v.Deleting,
		d.action.Verb != graph.Delete && v.ResourceVersion != d.action.Object.ResourceVersion:
		return report.Done
	}
	return report.Withdrawn
}

func (l *Ledger) close(now time.Time, uid types.UID, d *decision, how string) {
	delete(l.open, uid)
	l.count(d.action.Verb.String(), how)
	if d.differ != nil {
		d.differ.Ended = &now
	}
	if how == report.Done && d.action.Verb == graph.Delete {
		l.deletes.add(now.Sub(d.since))
	}
}

func (l *Ledger) count(verb, how string) {
	if l.counts[verb] == nil {
		l.counts[verb] = map[string]int{}
	}
	l.counts[verb][how]++
}

// lags are how much later than decided the last of many were done.
type lags struct {
	all  []time.Duration
	next int // where the next goes, once there are many
}

func (l *lags) add(lag time.Duration) {
	if len(l.all) < mostLags {
		l.all = append(l.all, lag)
		return
	}
	l.all[l.next] = lag
	l.next = (l.next + 1) % mostLags
}

// Gone takes in that an object goes, with what the graph has of it and decides about it until then. It returns what that was.
func (l *Ledger) Gone(now time.Time, a graph.Action, v graph.View) (how string) {
	if d := l.open[v.UID]; d != nil {
		l.close(now, v.UID, d, outcome(d, v, false))
		return report.Done
	}
	if len(v.Owners) == 0 || v.Deleting {
		return "" // nobody's dependent, or told of when it began to be deleted
	}
	// An owner that can never be told keeps its object with every collector.
	lives := slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool {
		return slices.Contains([]string{"present", "waiting", "orphaning", "unresolvable"}, o.Verdict)
	})
	unknown := slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool { return o.Verdict == "unknown" || o.Verdict == "asked" })
	switch {
	case a.Verb == graph.Delete || unknown && !lives:
		how = report.Sooner
	case lives:
		how = report.Others
	default:
		how = report.Kept
		l.differ(&report.Difference{At: now, What: report.Kept, Verb: graph.Delete.String(), Object: v.Ref.String(), UID: v.UID, Why: a.Why, Ended: &now})
	}
	l.unasked[how]++
	return how
}

// Rewound takes in that everything is forgotten and listed again: what is open was decided about a history that is over.
func (l *Ledger) Rewound(now time.Time) {
	for uid, d := range l.open {
		l.close(now, uid, d, report.Withdrawn)
	}
	clear(l.spaces)
}

// Overdue makes differences of decisions that nobody has carried out for long, and returns them. open are some that are open, to be looked at again.
func (l *Ledger) Overdue(now time.Time) (late []graph.Action, open []types.UID) {
	for uid, d := range l.open {
		if len(open) < mostLooks {
			open = append(open, uid)
		}
		if d.late || now.Sub(d.since) < l.late {
			continue
		}
		d.late = true
		l.count(d.action.Verb.String(), report.Late)
		a := d.action
		d.differ = &report.Difference{At: d.since, What: report.Late, Verb: a.Verb.String(), Object: a.Object.String(), UID: uid, Why: a.Why}
		l.differ(d.differ)
		late = append(late, a)
	}
	slices.SortFunc(late, func(a, b graph.Action) int { return cmp.Compare(a.Object.String(), b.Object.String()) })
	return late, open
}

func (l *Ledger) differ(d *report.Difference) {
	if len(l.differences) >= mostDifferences {
		l.more++
		return
	}
	l.differences = append(l.differences, d)
}

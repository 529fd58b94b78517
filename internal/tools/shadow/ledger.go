package shadow

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// Bounds of what is remembered. Past them things are counted only, and the report says so.
const (
	mostOpen        = 100_000
	mostDifferences = 1000
	mostOnPurpose   = 100    // differences
	mostWritten     = 1000   // objects whose references were written, until something is decided about them
	mostLags        = 10_000 // of the last deletes
	mostLooks       = 5000   // at what is open, at once: others have their turn the next time
)

// Ledger is what was decided, and what became of it.
type Ledger struct {
	Since time.Time
	late  time.Duration
	sight sight

	open        map[types.UID]*decision
	spaces      map[string]*space         // by name
	counts      map[string]map[string]int // by verb, and what became of it
	unasked     map[string]int            // of deletes that were not decided
	written     map[types.UID]string      // on purpose of which the cluster does not look at what was written
	deletes     lags
	drains      lags // of namespaces, since nothing was left in them
	differences []*report.Difference
	purposely   []*report.Difference // those on purpose
	more        int                  // differences that are only counted
	moreOfThose int                  // on purpose
	moreDeletes map[string]int       // those of them that delete, by the purpose
	forgotten   int                  // decisions that there was no room for
	unwritten   int                  // writes that there was no room for in written
}

type decision struct {
	action  graph.Action
	since   time.Time
	past    past
	purpose string             // on which the cluster does not carry it out; "" if that is not known
	differ  *report.Difference // nil: it is not late
	late    bool
}

// NewLedger begins one, in which a decision is late after a time.
func NewLedger(now time.Time, late time.Duration) *Ledger {
	return &Ledger{Since: now, late: late, open: map[types.UID]*decision{}, spaces: map[string]*space{}, counts: map[string]map[string]int{}, unasked: map[string]int{}, written: map[types.UID]string{}, moreDeletes: map[string]int{}}
}

// Decided takes in what is decided about an object now, and how the graph has it.
func (l *Ledger) Decided(now time.Time, uid types.UID, a graph.Action, v graph.View, there bool) {
	a.Why = bounded(a.Why, mostWhy)
	d := l.open[uid]
	if d != nil && there && a.Verb == d.action.Verb {
		if a.Why != d.action.Why {
			d.step(now, told(a))
		}
		d.action = a // of the version that is there now
		return
	}
	if d != nil {
		how := report.Withdrawn // what goes closes it before: see Gone
		if there {
			how = outcome(d, v, there)
		}
		l.close(now, uid, d, how, became(how, a, v, there))
	}
	if a.Verb == graph.Keep {
		delete(l.written, uid) // nothing came of it
	}
	if !a.Request() || a.Verb == graph.Lookup || !there {
		return
	}
	purpose := l.written[uid]
	delete(l.written, uid)
	if len(l.open) >= mostOpen {
		l.forgotten++
		return
	}
	d = &decision{action: a, since: now, purpose: purpose}
	d.step(now, told(a))
	l.open[uid] = d
}

func (d *decision) step(now time.Time, what string) {
	d.past.add(now, what)
	d.past.into(d.differ)
}

// told is a decision in words.
func told(a graph.Action) string { return a.Verb.String() + ": " + a.Why }

// became says by what a decision came to its end.
func became(how string, a graph.Action, v graph.View, there bool) string {
	switch {
	case !there:
		return how + ": it is not followed any more, and whether it was done is not known"
	case how == report.Withdrawn:
		return how + ", now " + told(a)
	case v.Deleting:
		return how + ": it is being deleted"
	}
	return how + ": it was changed"
}

// Wrote takes in that the references of an object were written about which nothing was to be done,
// and on which purpose the cluster does not look at it again for that; "": it does. What is decided
// next follows from it, and may be decided already.
func (l *Ledger) Wrote(uid types.UID, purpose string) {
	delete(l.written, uid)
	switch d := l.open[uid]; {
	case purpose == "":
	case d != nil:
		d.purpose = purpose
	case len(l.written) < mostWritten:
		l.written[uid] = purpose
	default:
		l.unwritten++
	}
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

func (l *Ledger) close(now time.Time, uid types.UID, d *decision, how, why string) {
	delete(l.open, uid)
	d.step(now, why)
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

// Gone takes in that an object goes, or begins to be deleted, with what the graph has of it and
// decides about it until then. It returns what that was.
func (l *Ledger) Gone(now time.Time, a graph.Action, v graph.View) (how string) {
	delete(l.written, v.UID)
	d := l.open[v.UID]
	if d != nil {
		how = outcome(d, v, false)
		l.close(now, v.UID, d, how, how+": it was deleted")
		if how == report.Done {
			return how
		}
	}
	if len(v.Owners) == 0 || v.Deleting {
		return "" // no dependent, or told of when it began to be deleted
	}
	// An owner that can never be determined keeps its object with every collector.
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
		l.kept(now, d, a, v)
	}
	l.unasked[how]++
	return how
}

// kept makes a difference of what was deleted although Weir would have kept it.
func (l *Ledger) kept(now time.Time, d *decision, a graph.Action, v graph.View) {
	differ := &report.Difference{At: now, What: report.Kept, Verb: graph.Delete.String(), Object: v.Ref.String(), UID: v.UID, Why: a.Why, Ended: &now}
	if has(v, orphaned) {
		differ.OnPurpose = afterOrphaning
	}
	p := past{}
	if d != nil {
		p = d.past
	} else {
		p.add(now, "deleted, when Weir had decided: "+told(a))
	}
	p.into(differ)
	l.differ(differ)
}

// Unawaited takes in that an owner goes, or that its finalizer does, with what the graph has of it
// and decides about it until then. It tells whether Weir would have waited for what it may not have
// seen.
func (l *Ledger) Unawaited(now time.Time, a graph.Action, v graph.View) bool {
	purpose := unawaited(a, v)
	if purpose == "" {
		return false
	}
	l.differ(&report.Difference{At: now, What: report.Kept, Verb: graph.Unfinalize.String(), Object: v.Ref.String(), UID: v.UID, Why: a.Why, OnPurpose: purpose, Ended: &now})
	return true
}

// Rewound takes in that everything is forgotten and listed again: what is open was decided about a
// history that is over.
func (l *Ledger) Rewound(now time.Time) {
	const why = "the history of the API server went back"
	for uid, d := range l.open {
		l.close(now, uid, d, report.Withdrawn, report.Withdrawn+": "+why)
	}
	for _, s := range l.spaces {
		s.past.add(now, why)
		s.ends(now)
	}
	clear(l.spaces)
	clear(l.written)
}

// Due are the decisions that no client has carried out for long, and that Overdue will make
// differences of.
func (l *Ledger) Due(now time.Time) (due []graph.Action) {
	for _, d := range l.open {
		if !d.late && now.Sub(d.since) >= l.late {
			due = append(due, d.action)
		}
	}
	return due
}

// Overdue makes differences of decisions that no client has carried out for long, and returns them.
// purposes are those on which the cluster does not carry some out. open are some that are open, to
// be looked at again.
func (l *Ledger) Overdue(now time.Time, purposes map[types.UID]string) (late []report.Difference, open []types.UID) {
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
		d.differ = &report.Difference{At: d.since, What: report.Late, Verb: a.Verb.String(), Object: a.Object.String(), UID: uid, Why: a.Why,
			OnPurpose: cmp.Or(d.purpose, purposes[uid])}
		d.step(now, report.Late)
		l.differ(d.differ)
		late = append(late, *d.differ)
	}
	slices.SortFunc(late, func(a, b report.Difference) int { return cmp.Compare(a.Object, b.Object) })
	return late, open
}

func (l *Ledger) differ(d *report.Difference) {
	d.Object, d.Why = bounded(d.Object, mostObject), bounded(d.Why, mostWhy)
	list, most, more := &l.differences, mostDifferences, &l.more
	if d.OnPurpose != "" {
		list, most, more = &l.purposely, mostOnPurpose, &l.moreOfThose
	}
	if len(*list) >= most {
		*more++
		if d.OnPurpose != "" && d.Deletes() {
			l.moreDeletes[d.OnPurpose]++
		}
		return
	}
	*list = append(*list, d)
}

package shadow

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// Bounds of what is kept. What is beyond them is only counted, and the report says so.
const (
	mostOpen        = 100_000
	mostDifferences = 3000
	mostWritten     = 1000 // objects whose references were written, until something is decided about them
	mostLooks       = 5000 // open decisions that one sweep checks; others have their turn in a later one
	// Bytes of texts that users choose: a name in an owner reference may be as long as an object is
	// large. As JSON each byte takes two at most, so that a report stays below report.Most.
	mostName = 512
	mostWhy  = 1024
)

// bounded returns text in one line, cut to most bytes. A long text is cut before it is made
// printable, which does not make it shorter.
func bounded(text string, most int) string {
	text = text[:min(len(text), most+utf8.UTFMax)]
	return words.Cut(words.Printable(strings.ToValidUTF8(text, "?")), most)
}

// Ledger records decisions, and what became of them.
type Ledger struct {
	Since time.Time
	late  time.Duration
	sight sight

	open        map[types.UID]*decision
	counts      map[string]map[string]int // by verb, and by what became of them
	unasked     map[string]int            // deletes that were not decided
	written     map[types.UID]string      // why, on purpose, the cluster does not look at a write
	differences []*report.Difference
	more        int // differences and decisions that there was no room for
}

type decision struct {
	action  graph.Action
	since   time.Time
	purpose string             // why the cluster does not carry it out, if that is on purpose; "" if it is not known to be
	differ  *report.Difference // nil if it is not late
	late    bool
}

// NewLedger returns an empty Ledger, in which a decision is late after the duration late.
func NewLedger(now time.Time, late time.Duration) *Ledger {
	return &Ledger{Since: now, late: late, open: map[types.UID]*decision{},
		counts: map[string]map[string]int{}, unasked: map[string]int{}, written: map[types.UID]string{}}
}

// Decided records the present decision about an object, and the graph's view of it.
func (l *Ledger) Decided(now time.Time, uid types.UID, a graph.Action, v graph.View, there bool) {
	a.Why = bounded(a.Why, mostWhy)
	d := l.open[uid]
	if d != nil && there && a.Verb == d.action.Verb {
		d.action = a // of the present version
		return
	}
	if d != nil {
		how := report.Withdrawn // Gone has closed the decisions about deleted objects
		if there {
			how = outcome(d, v, there)
		}
		l.close(now, uid, d, how)
	}
	if a.Verb == graph.Keep {
		delete(l.written, uid) // it led to nothing
	}
	if !a.Request() || a.Verb == graph.Lookup || !there {
		return
	}
	purpose := l.written[uid]
	delete(l.written, uid)
	if len(l.open) >= mostOpen {
		l.more++
		return
	}
	l.open[uid] = &decision{action: a, since: now, purpose: purpose}
}

// Wrote records that the references of an object were written when nothing was to be done about it,
// and why on purpose the cluster does not look at it again for that; "" if it does. The next
// decision follows from this write, and may have been made already.
func (l *Ledger) Wrote(uid types.UID, purpose string) {
	delete(l.written, uid)
	switch d := l.open[uid]; {
	case purpose == "":
	case d != nil:
		d.purpose = purpose
	case len(l.written) < mostWritten:
		l.written[uid] = purpose
	}
}

// outcome returns what became of a decision that no longer stands.
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
}

func (l *Ledger) count(verb, how string) {
	if l.counts[verb] == nil {
		l.counts[verb] = map[string]int{}
	}
	l.counts[verb][how]++
}

// Gone records that an object is gone, or begins to be deleted, with the graph's view and decision
// until then. It returns what that was.
func (l *Ledger) Gone(now time.Time, a graph.Action, v graph.View) (how string) {
	delete(l.written, v.UID)
	d := l.open[v.UID]
	if d != nil {
		how = outcome(d, v, false)
		l.close(now, v.UID, d, how)
		if how == report.Done {
			return how
		}
	}
	if len(v.Owners) == 0 || v.Deleting {
		return "" // no dependent, or recorded when it began to be deleted
	}
	// An owner that can never be determined keeps its object with every collector.
	lives := slices.ContainsFunc(v.Owners, func(o graph.OwnerView) bool {
		return slices.Contains([]string{"present", "waiting", "orphaning", "unresolvable"}, o.Verdict)
	})
	unknown := slices.ContainsFunc(v.Owners,
		func(o graph.OwnerView) bool { return o.Verdict == "unknown" || o.Verdict == "asked" })
	switch {
	case a.Verb == graph.Delete || unknown && !lives:
		how = report.Sooner
	case lives:
		how = report.Others
	default:
		how = report.Kept
		l.kept(now, a, v)
	}
	l.unasked[how]++
	return how
}

// kept records a difference: an object was deleted that Weir would have kept.
func (l *Ledger) kept(now time.Time, a graph.Action, v graph.View) {
	differ := &report.Difference{At: now, What: report.Kept, Verb: graph.Delete.String(), Object: v.String(),
		UID: v.UID, Why: a.Why, Ended: &now}
	if has(v, orphaned) {
		differ.OnPurpose = afterOrphaning
	}
	l.differ(differ)
}

// Rewound records that everything is forgotten and listed again: open decisions are about a history
// that is over.
func (l *Ledger) Rewound(now time.Time) {
	for uid, d := range l.open {
		l.close(now, uid, d, report.Withdrawn)
	}
	clear(l.written)
}

// Due returns the decisions that are late, which Overdue will turn into differences.
func (l *Ledger) Due(now time.Time) (due []graph.Action) {
	for _, d := range l.open {
		if !d.late && now.Sub(d.since) >= l.late {
			due = append(due, d.action)
		}
	}
	return due
}

// Overdue turns late decisions into differences, and returns those. purposes are the differences on
// purpose, by object. open are some objects with open decisions, to be decided again.
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
		d.differ = &report.Difference{At: d.since, What: report.Late, Verb: a.Verb.String(), Object: a.Object.String(),
			UID: uid, Why: a.Why, OnPurpose: cmp.Or(d.purpose, purposes[uid])}
		l.differ(d.differ)
		late = append(late, *d.differ)
	}
	slices.SortFunc(late, func(a, b report.Difference) int { return cmp.Compare(a.Object, b.Object) })
	return late, open
}

func (l *Ledger) differ(d *report.Difference) {
	if len(l.differences) >= mostDifferences {
		l.more++
		return
	}
	d.Object, d.Why = bounded(d.Object, mostName), bounded(d.Why, mostWhy)
	l.differences = append(l.differences, d)
}

// Report returns a copy of what is recorded.
func (l *Ledger) Report(now time.Time, ready bool) report.Report {
	r := report.Report{Since: l.Since, At: now, Ready: ready, ComparedSeconds: l.sight.compared.Seconds(),
		Unseen: l.sight.unseen, Decisions: map[string]map[string]int{}, Deletes: maps.Clone(l.unasked),
		Differences: []report.Difference{}, More: l.more}
	for verb, of := range l.counts {
		r.Decisions[verb] = maps.Clone(of)
	}
	for _, d := range l.open {
		verb := d.action.Verb.String()
		if r.Decisions[verb] == nil {
			r.Decisions[verb] = map[string]int{}
		}
		r.Decisions[verb]["open"]++
	}
	for _, d := range l.differences {
		r.Differences = append(r.Differences, *d)
	}
	return r
}

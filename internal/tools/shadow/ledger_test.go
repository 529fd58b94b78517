package shadow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ref(name, version string) graph.Ref {
	return graph.Ref{Kind: schema.GroupResource{Resource: "configmaps"}, Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: version}
}

func action(verb graph.Verb, version string) graph.Action {
	return graph.Action{Verb: verb, Object: ref("leaf", version), Why: "owner is gone"}
}

func view(version string, change ...func(*graph.View)) graph.View {
	v := graph.View{Ref: ref("leaf", version)}
	for _, f := range change {
		f(&v)
	}
	return v
}

func deleting(v *graph.View) { v.Deleting = true }

func owned(verdicts ...string) func(*graph.View) {
	return func(v *graph.View) {
		for _, verdict := range verdicts {
			v.Owners = append(v.Owners, graph.OwnerView{Verdict: verdict})
		}
	}
}

// short is a report in short.
func short(r report.Report) string {
	var parts []string
	for _, verb := range []string{"delete", "release", "unfinalize"} {
		for _, how := range []string{report.Done, report.Withdrawn, report.Late, "open"} {
			if n := r.Decisions[verb][how]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s %s %d", verb, how, n))
			}
		}
	}
	for _, how := range []string{report.Sooner, report.Others, report.Kept} {
		if n := r.Deletes[how]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", how, n))
		}
	}
	for _, d := range r.Differences {
		if d.OnPurpose != "" {
			parts = append(parts, fmt.Sprintf("%s %s on purpose: %s", d.What, d.Object, d.OnPurpose))
		} else {
			parts = append(parts, fmt.Sprintf("difference %s %s ended %t", d.What, d.Object, d.Ended != nil))
		}
	}
	return strings.Join(parts, "; ")
}

func TestWhatBecomesOfDecisions(t *testing.T) {
	const late = time.Minute
	keep := graph.Action{Verb: graph.Keep, Object: ref("leaf", "2")}
	for name, c := range map[string]struct {
		then func(l *Ledger)
		want string
	}{
		"a delete is open":    {func(*Ledger) {}, "delete open 1"},
		"it goes":             {func(l *Ledger) { l.Gone(start.Add(time.Second), action(graph.Delete, "1"), view("1", owned("absent"))) }, "delete done 1"},
		"it is not followed":  {func(l *Ledger) { l.Decided(start.Add(time.Second), "leaf", graph.Action{}, graph.View{}, false) }, "delete withdrawn 1"},
		"it terminates":       {func(l *Ledger) { l.Decided(start.Add(time.Second), "leaf", keep, view("2", deleting), true) }, "delete done 1"},
		"an owner turns up":   {func(l *Ledger) { l.Decided(start.Add(time.Second), "leaf", keep, view("1"), true) }, "delete withdrawn 1"},
		"it is decided again": {func(l *Ledger) { l.Decided(start.Add(time.Second), "leaf", action(graph.Delete, "2"), view("2"), true) }, "delete open 1"},
		"another is decided": {func(l *Ledger) {
			l.Decided(start.Add(time.Second), "leaf", action(graph.Release, "2"), view("2"), true)
		}, "delete withdrawn 1; release open 1"},
		"released": {func(l *Ledger) {
			l.Decided(start, "leaf", action(graph.Release, "2"), view("2"), true)
			l.Decided(start, "leaf", keep, view("3"), true)
		}, "delete withdrawn 1; release done 1"},
		"a lookup is no decision":  {func(l *Ledger) { l.Decided(start, "leaf", action(graph.Lookup, "1"), view("1"), true) }, "delete withdrawn 1"},
		"the cluster was restored": {func(l *Ledger) { l.Rewound(start.Add(time.Second)) }, "delete withdrawn 1"},
		"nobody does it":           {func(l *Ledger) { l.Overdue(start.Add(late), nil) }, "delete late 1; delete open 1; difference late configmaps shop/leaf ended false"},
		"not for long":             {func(l *Ledger) { l.Overdue(start.Add(late-1), nil) }, "delete open 1"},
		"it is told once":          {func(l *Ledger) { l.Overdue(start.Add(late), nil); l.Overdue(start.Add(2*late), nil) }, "delete late 1; delete open 1; difference late configmaps shop/leaf ended false"},
		"somebody does it late": {func(l *Ledger) {
			l.Overdue(start.Add(late), nil)
			l.Gone(start.Add(2*late), action(graph.Delete, "1"), view("1", owned("absent")))
		}, "delete done 1; delete late 1; difference late configmaps shop/leaf ended true"},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(start, late)
			l.Decided(start, "leaf", action(graph.Delete, "1"), view("1", owned("absent")), true)
			c.then(l)
			if diff := cmp.Diff(c.want, short(l.Report(start.Add(time.Hour), true))); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatGoesWithoutADecision(t *testing.T) {
	for name, c := range map[string]struct {
		verb graph.Verb
		view graph.View
		want string
	}{
		"nobody's dependent":                       {graph.Keep, view("1"), ""},
		"it terminated before":                     {graph.Keep, view("1", deleting, owned("absent")), ""},
		"before the decision was told":             {graph.Delete, view("1", owned("absent")), "sooner 1"},
		"before an owner was looked up":            {graph.Lookup, view("1", owned("unknown", "absent")), "sooner 1"},
		"an owner lives":                           {graph.Keep, view("1", owned("present", "absent")), "others 1"},
		"one of two is not known":                  {graph.Keep, view("1", owned("present", "unknown")), "others 1"},
		"an owner cannot be determined":            {graph.Keep, view("1", owned("unresolvable", "absent")), "others 1"},
		"to be released by one, and another lives": {graph.Release, view("1", owned(orphaned, "present")), "others 1"},
		"its owner still lets its dependents go":   {graph.Release, view("1", owned("orphaning")), "others 1"},
		"its owner was orphaned":                   {graph.Release, view("1", owned(orphaned)), "kept 1; kept configmaps shop/leaf on purpose: " + afterOrphaning},
		"kept, although all owners are gone":       {graph.Wait, view("1", owned("absent")), "kept 1; difference kept configmaps shop/leaf ended true"},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(start, time.Minute)
			l.Gone(start, action(c.verb, "1"), c.view)
			if diff := cmp.Diff(c.want, short(l.Report(start, true))); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsReleasedAndDeletedIsCompared: that there is nothing left to release is no news, that it
// was deleted is.
func TestWhatIsReleasedAndDeletedIsCompared(t *testing.T) {
	l := NewLedger(start, time.Minute)
	release := action(graph.Release, "1")
	l.Decided(start, "leaf", release, view("1", owned("orphaning")), true)
	l.Gone(start.Add(time.Second), release, view("1", owned(orphaned)))
	r := l.Report(start, true)
	if diff := cmp.Diff("release withdrawn 1; kept 1; kept configmaps shop/leaf on purpose: "+afterOrphaning, short(r)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestADifferenceOnPurposeIsOneOfWhatFollowsFromAWrite only: what is decided later has another
// reason.
func TestADifferenceOnPurposeIsOneOfWhatFollowsFromAWrite(t *testing.T) {
	const late = time.Minute
	decide := func(l *Ledger, verb graph.Verb) { l.Decided(start, "leaf", action(verb, "1"), view("1"), true) }
	for name, c := range map[string]struct {
		then func(*Ledger)
		want string
	}{
		"it follows":           {func(l *Ledger) { l.Wrote("leaf", judgedWhenWritten); decide(l, graph.Lookup); decide(l, graph.Delete) }, judgedWhenWritten},
		"it was decided first": {func(l *Ledger) { decide(l, graph.Delete); l.Wrote("leaf", judgedWhenWritten) }, judgedWhenWritten},
		"nothing came of it":   {func(l *Ledger) { l.Wrote("leaf", judgedWhenWritten); decide(l, graph.Keep); decide(l, graph.Delete) }, ""},
		"it was written again": {func(l *Ledger) { l.Wrote("leaf", judgedWhenWritten); l.Wrote("leaf", ""); decide(l, graph.Delete) }, ""},
		"another decision": {func(l *Ledger) {
			l.Wrote("leaf", judgedWhenWritten)
			decide(l, graph.Release)
			decide(l, graph.Delete)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(start, late)
			c.then(l)
			l.Overdue(start.Add(late), nil)
			r := l.Report(start, true)
			found := r.Differences
			if len(found) != 1 || found[0].OnPurpose != c.want || (r.Unexplained() == 0) != (c.want != "") {
				t.Errorf("%+v, want one on purpose: %q", found, c.want)
			}
		})
	}
}

func TestMemoryIsBoundedAndSaysSo(t *testing.T) {
	l := NewLedger(start, time.Minute)
	for i := range mostOpen + 5 {
		uid := types.UID(fmt.Sprint(i))
		l.Decided(start, uid, graph.Action{Verb: graph.Delete, Object: graph.Ref{UID: uid}}, graph.View{Ref: graph.Ref{UID: uid}}, true)
	}
	_, open := l.Overdue(start.Add(time.Hour), nil)
	for _, uid := range open {
		l.Decided(start.Add(time.Hour), uid, graph.Action{}, graph.View{}, false)
	}
	r := l.Report(start.Add(time.Hour), true)
	if len(r.Differences) != mostDifferences || r.More != mostOpen-mostDifferences+5 || len(open) != mostLooks {
		t.Errorf("%d differences and %d more, %d to look at", len(r.Differences), r.More, len(open))
	}
	for i := range 2 * mostWritten {
		l.Wrote(types.UID(fmt.Sprintf("written-%d", i)), judgedWhenWritten)
	}
	if len(l.written) != mostWritten {
		t.Errorf("%d writes are kept", len(l.written))
	}
}

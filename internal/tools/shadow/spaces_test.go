package shadow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

var configMaps, pods = schema.GroupResource{Resource: "configmaps"}, schema.GroupResource{Resource: "pods"}

// served is a kind that the graph follows.
func served(resource string, state graph.ListState) graph.KindStats {
	return graph.KindStats{Resource: graph.Resource{Resource: resource, Namespaced: true, Collected: true, Deletable: true, Listable: true}, Served: true, State: state, Reason: "no answer"}
}

// holds is what a namespace holds: of each kind how many, and how many of them terminate.
func holds(kinds ...graph.KindCount) graph.Inventory { return graph.Inventory{Kinds: kinds} }

func TestWhatComesNextInANamespace(t *testing.T) {
	followed := []graph.KindStats{served("configmaps", graph.Synced), served("pods", graph.Synced)}
	events := served("events", graph.Unwatched)
	events.Collected = false
	for name, c := range map[string]struct {
		served       []graph.KindStats
		inv          graph.Inventory
		undiscovered []string
		want         drain.Verb
		kinds        []schema.GroupResource
	}{
		"nothing is left":                 {followed, holds(), nil, drain.Finalize, nil},
		"pods before the rest":            {followed, holds(graph.KindCount{Kind: configMaps, Total: 1}, graph.KindCount{Kind: pods, Total: 1}), nil, drain.Delete, []schema.GroupResource{pods}},
		"pods terminate":                  {followed, holds(graph.KindCount{Kind: configMaps, Total: 1}, graph.KindCount{Kind: pods, Total: 1, Terminating: 1}), nil, drain.Wait, nil},
		"then the rest":                   {followed, holds(graph.KindCount{Kind: configMaps, Total: 2, Terminating: 1}), nil, drain.Delete, []schema.GroupResource{configMaps}},
		"a group does not answer":         {followed, holds(), []string{"metrics.k8s.io/v1"}, drain.Wait, nil},
		"a kind cannot be listed":         {append(followed, served("secrets", graph.Failing)), holds(), nil, drain.Wait, nil},
		"a kind may not be listed":        {append(followed, served("secrets", graph.Forbidden)), holds(), nil, drain.Wait, nil},
		"a kind is being listed":          {append(followed, served("secrets", graph.Listing)), holds(), nil, drain.Finalize, nil},
		"a kind that the graph never has": {append(followed, events), holds(), nil, drain.Finalize, nil},
	} {
		t.Run(name, func(t *testing.T) {
			step := whatNext(c.served, c.inv, c.undiscovered)
			if step.Verb != c.want || !slices.Equal(step.Kinds, c.kinds) {
				t.Errorf("%s %v, because %s; want %s %v", step.Verb, step.Kinds, step.Why, c.want, c.kinds)
			}
		})
	}
}

// toldOfSpaces is what a report tells of namespaces, in short.
func toldOfSpaces(r report.Report) string {
	out := ""
	for _, how := range []string{report.Done, report.Sooner, report.Kept, report.Refused, report.Late, "open"} {
		if n := r.Decisions[report.Drain][how]; n > 0 {
			out += fmt.Sprintf("%s %d; ", how, n)
		}
	}
	if r.NamespaceLagSeconds.Most > 0 {
		out += fmt.Sprintf("lag %v; ", r.NamespaceLagSeconds.Most)
	}
	for _, d := range r.Differences {
		out += fmt.Sprintf("difference %s %s: %s, ended %t; ", d.What, d.Object, d.Why, d.Ended != nil)
	}
	return out
}

func TestWhatBecomesOfNamespaces(t *testing.T) {
	const late = time.Minute
	var (
		remove = drain.Step{Verb: drain.Delete, Why: "deleting"}
		wait   = drain.Step{Verb: drain.Wait, Why: "waiting"}
		end    = drain.Step{Verb: drain.Finalize, Why: "nothing is left"}
		full   = holds(graph.KindCount{Kind: configMaps, Total: 2})
		half   = holds(graph.KindCount{Kind: configMaps, Total: 2, Terminating: 1})
		empty  = holds()
	)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	stuck := func(l *Ledger, d time.Duration, r Reading) {
		for _, name := range l.Stuck(at(d)) {
			l.Read(at(d), name, r)
		}
	}
	for name, c := range map[string]struct {
		then func(l *Ledger)
		want string
	}{
		"it is being deleted": {func(*Ledger) {}, "open 1; "},
		"it goes when nothing is left": {func(l *Ledger) {
			l.Looked(at(1*time.Second), "shop", end, empty)
			l.Went(at(3*time.Second), "shop")
			l.Left(at(3*time.Second+late), "shop", empty)
		}, "done 1; lag 2; "},
		"it is told twice that it is gone": {func(l *Ledger) {
			l.Looked(at(1*time.Second), "shop", end, empty)
			l.Went(at(3*time.Second), "shop")
			l.Went(at(9*time.Second), "shop")
		}, "done 1; lag 2; "},
		"its content goes a moment later": {func(l *Ledger) {
			l.Went(at(1*time.Second), "shop")
			l.Left(at(2*time.Second), "shop", full)
			l.Left(at(3*time.Second), "shop", empty)
			l.Left(at(1*time.Second+late), "shop", empty)
		}, "sooner 1; "},
		"its content stays": {func(l *Ledger) {
			l.Went(at(1*time.Second), "shop")
			l.Left(at(1*time.Second+late), "shop", full)
		}, "kept 1; difference kept namespaces shop: it holds 2 configmaps, ended true; "},
		"content turns up after it went": {func(l *Ledger) {
			l.Looked(start, "shop", end, empty)
			l.Went(at(1*time.Second), "shop")
			l.Left(at(2*time.Second), "shop", empty)
			l.Left(at(1*time.Second+late), "shop", full)
		}, "done 1; lag 1; difference kept namespaces shop: it holds 2 configmaps, ended true; "},
		"it goes although Weir would wait": {func(l *Ledger) {
			l.Looked(start, "shop", wait, empty)
			l.Went(at(1*time.Second), "shop")
		}, "kept 1; difference kept namespaces shop: waiting, ended true; "},
		"another has its name": {func(l *Ledger) {
			l.Went(at(1*time.Second), "shop")
			l.Returned(at(1*time.Second), "shop")
			l.Left(at(1*time.Second+late), "shop", full)
		}, "sooner 1; "},
		"another of its name is being deleted": {func(l *Ledger) {
			l.Went(at(1*time.Second), "shop")
			l.Ending(at(2*time.Second), "shop", remove, full)
		}, "sooner 1; open 1; "},
		"nothing moves": {func(l *Ledger) {
			stuck(l, late, Reading{There: true, Says: "Discovery failed"})
			stuck(l, 2*late, Reading{There: true})
		}, "late 1; open 1; difference late namespaces shop: deleting; the namespace controller says: Discovery failed, ended false; "},
		"something moves": {func(l *Ledger) {
			l.Looked(at(late/2), "shop", remove, half)
			stuck(l, late, Reading{There: true})
		}, "open 1; "},
		"it moves after all": {func(l *Ledger) {
			stuck(l, late, Reading{There: true})
			l.Looked(at(2*late), "shop", wait, half)
		}, "late 1; open 1; difference late namespaces shop: deleting, ended true; "},
		"Weir would wait, too": {func(l *Ledger) {
			l.Looked(start, "shop", wait, half)
			stuck(l, late, Reading{There: true})
		}, "open 1; "},
		"the cluster may not delete what is in it": {func(l *Ledger) {
			stuck(l, late, Reading{There: true, Refused: "denied"})
		}, "refused 1; open 1; "},
		"nothing is left, and it stays": {func(l *Ledger) {
			l.Looked(start, "shop", end, empty)
			stuck(l, late, Reading{There: true, Refused: "denied"})
		}, "late 1; open 1; difference late namespaces shop: nothing is left; the namespace controller says: denied, ended false; "},
		"others hold it": {func(l *Ledger) {
			l.Looked(start, "shop", end, empty)
			stuck(l, late, Reading{There: true, Held: true})
			l.Went(at(2*late), "shop")
		}, "done 1; "},
		"its end was missed": {func(l *Ledger) {
			l.Looked(start, "shop", end, empty)
			stuck(l, late, Reading{})
		}, "done 1; lag 60; "},
		"the cluster was restored": {func(l *Ledger) { l.Rewound(at(time.Second)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(start, late)
			l.Ending(start, "shop", remove, full)
			c.then(l)
			if diff := cmp.Diff(c.want, toldOfSpaces(l.Report(at(time.Hour), true))); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADifferenceOfANamespaceHasItsHistory(t *testing.T) {
	l := NewLedger(start, time.Minute)
	full := holds(graph.KindCount{Kind: configMaps, Total: 2})
	l.Ending(start, "shop", drain.Step{Verb: drain.Delete, Why: "deleting"}, full)
	l.Stuck(start.Add(time.Minute))
	l.Read(start.Add(time.Minute), "shop", Reading{There: true})
	l.Looked(start.Add(2*time.Minute), "shop", drain.Step{Verb: drain.Finalize, Why: "nothing is left"}, holds())
	l.Went(start.Add(3*time.Minute), "shop") // after the end of the difference
	want := []report.Step{
		{At: start, What: "deleting; 2 objects in it do not terminate yet"},
		{At: start.Add(time.Minute), What: "late"},
		{At: start.Add(2 * time.Minute), What: "nothing is left; 0 objects in it do not terminate yet"},
	}
	if diff := cmp.Diff(want, l.Report(start, true).Differences[0].History); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestNamespacesAreBoundedAndItSaysSo(t *testing.T) {
	l := NewLedger(start, time.Minute)
	for i := range mostSpaces + 3 {
		l.Ending(start, fmt.Sprint(i), drain.Step{Verb: drain.Delete}, holds())
	}
	if r := l.Report(start, true); r.Forgotten != 3 || r.Decisions[report.Drain]["open"] != mostSpaces {
		t.Errorf("%d are open, %d forgotten", r.Decisions[report.Drain]["open"], r.Forgotten)
	}
}

func TestWhatANamespaceSaysOfItsEnd(t *testing.T) {
	now := metav1.Now()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}}
	ns.Status.Conditions = []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionTrue, Message: "denied"},
		{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "2 remain"},
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "all discovered"},
	}
	if diff := cmp.Diff(Reading{There: true, Refused: "denied", Says: "2 remain"}, readingOf(ns)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ns.Spec.Finalizers = []corev1.FinalizerName{"example.com/other"}
	if r := readingOf(ns); !r.Held {
		t.Error("the namespace controller does not hold it any more")
	}
	ns.DeletionTimestamp = nil
	if r := readingOf(ns); r.There {
		t.Error("it is another")
	}
}

// TestADifferenceOfANamespaceEnds: also when its end was missed, because another has its name by
// now, or the cluster was restored. What has ended before keeps its time.
func TestADifferenceOfANamespaceEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(l *Ledger, now time.Time)
		want string
	}{
		"it goes":               {func(l *Ledger, now time.Time) { l.Went(now, "shop") }, "it went"},
		"its end was missed":    {func(l *Ledger, now time.Time) { l.Returned(now, "shop") }, "there is another of its name"},
		"the cluster went back": {func(l *Ledger, now time.Time) { l.Rewound(now) }, "the history of the API server went back"},
		"another is being deleted": {func(l *Ledger, now time.Time) {
			l.Went(now, "shop")
			l.Ending(now.Add(time.Second), "shop", drain.Step{Verb: drain.Delete, Why: "deleting"}, holds())
		}, "it went"},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(start, time.Minute)
			l.Ending(start, "shop", drain.Step{Verb: drain.Delete, Why: "deleting"}, holds(graph.KindCount{Kind: configMaps, Total: 2}))
			if l.Read(start.Add(time.Minute), "shop", Reading{There: true}) == "" {
				t.Fatal("no difference")
			}
			at := start.Add(time.Hour)
			c.ends(l, at)
			d := l.Report(at, true).Differences[0]
			if d.Ended == nil || !d.Ended.Equal(at) || d.History[len(d.History)-1] != (report.Step{At: at, What: c.want}) {
				t.Errorf("ended %v, want %s, with %q at the end of %+v", d.Ended, at, c.want, d.History)
			}
		})
	}
}

package shadow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// stage is a Shadow that looks at namespaces of an API server in memory.
type stage struct {
	*scene
	api      *apitest.Server
	registry *prometheus.Registry
	lines    []string // of the log
}

func newStage(t *testing.T, change ...func(*Options)) *stage {
	t.Helper()
	st := &stage{api: apitest.New(), registry: prometheus.NewRegistry()}
	client, err := kubernetes.NewForConfig(st.api.Config())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Store: follow.NewStore(), Ready: func() error { return nil }, Undiscovered: func() []string { return nil }, Namespaces: client.CoreV1().Namespaces(),
		Registry: st.registry, Log: funcr.New(func(_, line string) { st.lines = append(st.lines, line) }, funcr.Options{})}
	for _, f := range change {
		f(&o)
	}
	st.scene = &scene{t, New(o)}
	st.Store.Apply(
		graph.Serving{Resources: []graph.Resource{fixture.Kinds[0]}}, graph.ListBegins{Kind: configMaps}, graph.ListEnds{Kind: configMaps})
	return st
}

// ending puts a namespace that is being deleted and holds what more says, and tells of it.
func (st *stage) ending(name, more string) {
	st.api.Put("namespaces", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, deletionTimestamp: '2026-11-25T00:00:00Z', finalizers: [x]}, spec: {finalizers: [kubernetes]}%s}", name, more))
	st.Namespace(name, follow.Deleting)
}

// told are the lines of the log since the last time that contain a text.
func (st *stage) told(text string) (out []string) {
	for _, line := range st.lines {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	st.lines = nil
	return out
}

func (st *stage) expect(want string) {
	st.Helper()
	if diff := cmp.Diff(want, toldOfSpaces(st.now())); diff != "" {
		st.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestNamespaceThatStandsStillIsRead: once it has for long, and what it says is a part of the
// difference.
func TestNamespaceThatStandsStillIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		st.ending("shop", ", status: {conditions: [{type: NamespaceDeletionDiscoveryFailure, status: 'True', message: no answer}]}")
		<-time.After(DefaultLate - time.Millisecond)
		st.sweep(t.Context())
		if asked := st.api.Requests(); len(asked) > 0 {
			t.Errorf("asked before it was late: %v", asked)
		}
		st.expect("open 1; ")
		<-time.After(time.Millisecond)
		st.sweep(t.Context())
		st.expect("late 1; open 1; difference late namespaces shop: nothing is left; the namespace controller says: no answer, ended false; ")
		if lines := st.told("the cluster has not done what Weir would do"); len(lines) != 1 || !strings.Contains(lines[0], `"object"="namespaces shop"`) || !strings.Contains(lines[0], "no answer") {
			t.Errorf("the log says %q", lines)
		}
		<-time.After(DefaultLate)
		st.sweep(t.Context())
		if asked := st.api.Requests(); len(asked) != 1 {
			t.Errorf("%d requests, want one: it was read already", len(asked))
		}
		st.Namespace("shop", follow.Went)
		st.sweep(t.Context())
		st.expect("done 1; late 1; lag 240; difference late namespaces shop: nothing is left; the namespace controller says: no answer, ended true; ")
	})
}

// TestNamespaceThatCannotBeReadIsReadAgain: an error is no news of it, a 404 is that it went.
func TestNamespaceThatCannotBeReadIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		st.ending("shop", "")
		<-time.After(DefaultLate)
		for _, code := range []int{403, 500} {
			st.api.Intercept(func(apitest.Request) *apitest.Reply { return apitest.Refuse(code, "Refused", "not now") })
			st.sweep(t.Context())
			st.expect("open 1; ")
			if lines := st.told("cannot read a namespace that stands still, will try again"); len(lines) != 1 || !strings.Contains(lines[0], "read namespace shop: not now") {
				t.Errorf("%d: the log says %q", code, lines)
			}
		}
		st.api.Intercept(nil)
		st.api.Forget("namespaces/shop")
		st.sweep(t.Context())
		st.expect("done 1; lag 120; ")
	})
}

// TestFewNamespacesAreReadAtOnce: however many stand still, and all have their turn.
func TestFewNamespacesAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		for i := range 2*mostReads + 3 {
			st.ending(fmt.Sprintf("shop-%02d", i), "")
		}
		<-time.After(DefaultLate)
		for _, want := range []int{mostReads, mostReads, 3, 0} {
			st.sweep(t.Context())
			if n := len(st.api.Requests()); n != want {
				t.Errorf("%d are read in one look, want %d", n, want)
			}
		}
	})
}

// TestNamespaceThatCannotBeReadForLongIsADifference: a gate must not open over what is not known.
// Once it can be read, that is over.
func TestNamespaceThatCannotBeReadForLongIsADifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		st.ending("shop", "")
		st.api.Intercept(func(apitest.Request) *apitest.Reply { return apitest.Refuse(403, "Forbidden", "no") })
		const unread = "difference late namespaces shop: nothing is left; why it stays is not known: read namespace shop: no, ended "
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{DefaultLate, "open 1; "}, {DefaultLate, "late 1; open 1; " + unread + "false; "}, {DefaultLate, "late 1; open 1; " + unread + "false; "}} {
			<-time.After(c.after)
			st.sweep(t.Context())
			st.expect(c.want)
		}
		if lines := st.told("the cluster has not done what Weir would do"); len(lines) != 1 {
			t.Errorf("the log says %q, want it once", lines)
		}
		st.api.Intercept(nil)
		st.sweep(t.Context())
		st.expect("late 1; open 1; " + unread + "true; difference late namespaces shop: nothing is left, ended false; ")
	})
}

// TestNamespacesThatCannotBeReadKeepNoOthersFromIt: more of them than are read in one look.
func TestNamespacesThatCannotBeReadKeepNoOthersFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		for i := range mostReads {
			st.ending(fmt.Sprintf("refused-%02d", i), "")
		}
		st.ending("shop", "")
		st.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if strings.Contains(r.Path, "refused") {
				return apitest.Refuse(403, "Forbidden", "no")
			}
			return nil
		})
		<-time.After(DefaultLate)
		for range 2 {
			<-time.After(time.Second)
			st.sweep(t.Context())
		}
		if lines := st.told(`"object"="namespaces shop"`); len(lines) != 1 {
			t.Errorf("the log says %q of the one that can be read", lines)
		}
	})
}

// TestWhatANamespaceHoldsIsLookedAtBeforeItIsGone: what went since the last look does not count as
// kept by Weir, and what stays does.
func TestWhatANamespaceHoldsIsLookedAtBeforeItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		st.see("leaf", nil)
		st.ending("shop", "")
		st.gone("leaf")
		<-time.After(time.Second)
		st.Namespace("shop", follow.Went)
		st.expect("done 1; ")

		st = newStage(t)
		st.see("leaf", nil)
		st.ending("shop", "")
		st.Namespace("shop", follow.Went)
		st.sweep(t.Context())
		st.expect("open 1; ")
		<-time.After(DefaultLate)
		st.sweep(t.Context())
		st.expect("kept 1; difference kept namespaces shop: it holds 1 configmaps, ended true; ")

		st = newStage(t)
		st.ending("shop", "")
		st.Namespace("shop", follow.There) // another of that name
		st.expect("sooner 1; ")
	})
}

// TestGroupThatDoesNotAnswerKeepsANamespace: what is left is not known, and the cluster may know as
// little.
func TestGroupThatDoesNotAnswerKeepsANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, func(o *Options) { o.Undiscovered = func() []string { return []string{"metrics.k8s.io/v1"} } })
		st.ending("shop", "")
		<-time.After(DefaultLate)
		st.sweep(t.Context())
		if asked := st.api.Requests(); len(asked) > 0 {
			t.Errorf("asked %v: Weir would wait, too", asked)
		}
		st.expect("open 1; ")
	})
}

// TestReportIsWrittenAndAsMetrics: at once, every ten seconds, and at the end; who reads the file
// sees a whole one.
func TestReportIsWrittenAndAsMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "report.json")
		st := newStage(t, func(o *Options) { o.Report = file })
		<-time.After(time.Hour) // as a standby
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		began := time.Now()
		go func() { st.Shadow.Run(ctx); close(done) }()
		synctest.Wait()
		at := func() *report.Report {
			t.Helper()
			in, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			r, err := report.Read(in)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := at(); !r.Since.Equal(began) || !r.At.Equal(began) {
			t.Errorf("the first is of %s until %s, want from when it ran, %s", r.Since, r.At, began)
		}
		st.see("dies", nil)
		st.see("leaf", nil, own("dies"))
		st.gone("dies")
		st.decide("leaf")
		<-time.After(reportEvery - time.Millisecond)
		if r := at(); len(r.Decisions) > 0 {
			t.Errorf("written before its time: %+v", r)
		}
		<-time.After(2 * time.Millisecond)
		if r := at(); r.Decisions["delete"]["open"] != 1 {
			t.Errorf("after %s: %+v", reportEvery, r)
		}
		<-time.After(DefaultLate)
		cancel()
		<-done
		r := at()
		if !r.At.Equal(time.Now()) || len(r.Differences) != 1 {
			t.Errorf("the last one: %+v", r)
		}
		want := map[string]float64{"delete late": 1, "delete open": 1}
		if diff := cmp.Diff(want, fixture.Counts(t, st.registry, "weir_shadow_decisions")); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		if lines := st.told("the cluster has not done what Weir would do"); len(lines) != 1 || !strings.Contains(lines[0], `"object"="configmaps shop/leaf"`) {
			t.Errorf("the log says %q", lines)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%v, %v: others may read it", info, err)
		}
		if left, err := filepath.Glob(file + ".*"); err != nil || len(left) > 0 {
			t.Errorf("%v, %v are left", left, err)
		}
	})
}

// TestReportThatCannotBeWrittenChangesNothing: neither what was there, nor that the comparison goes
// on.
func TestReportThatCannotBeWrittenChangesNothing(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{taken, filepath.Join(dir, "nowhere", "report.json")} {
		st := newStage(t, func(o *Options) { o.Report = file })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		st.Shadow.Run(ctx)
		if lines := st.told(`"write the report"`); len(lines) != 2 || !strings.Contains(lines[0], "write "+file) { // the first, and the last
			t.Errorf("%s: the log says %q", file, lines)
		}
	}
	var names []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"taken"}) {
		t.Errorf("%v, %v: nothing half written is to be left", names, err)
	}
	if err := write(filepath.Join(dir, "report.json"), report.Report{LagSeconds: report.Lag{Median: math.Inf(1)}}); err == nil {
		t.Error("what cannot be encoded was written")
	} else if unsupported := (*json.UnsupportedValueError)(nil); !errors.As(err, &unsupported) {
		t.Error(err)
	}
}

// TestMetricsSayWhatTheReportSays: each series, with what it is called by.
func TestMetricsSayWhatTheReportSays(t *testing.T) {
	registry := prometheus.NewRegistry()
	newMetrics(registry).set(report.Report{
		Decisions: map[string]map[string]int{"delete": {report.Done: 1, "open": 2}, "release": {report.Withdrawn: 3}, "unblock": {report.Late: 4}, "unfinalize": {report.Done: 5},
			report.Drain: {report.Done: 1, report.Sooner: 2, report.Kept: 3, report.Refused: 4, report.Late: 5, "open": 6}},
		Deletes:     map[string]int{report.Sooner: 1, report.Others: 2, report.Kept: 3},
		Differences: make([]report.Difference, 2), More: 3, OnPurpose: make([]report.Difference, 4), MoreOnPurpose: 5, LagSeconds: report.Lag{Median: 1, P99: 2, Most: 3},
	})
	for name, want := range map[string]map[string]float64{
		"weir_shadow_decisions": {"delete done": 1, "delete open": 2, "release withdrawn": 3, "unblock late": 4, "unfinalize done": 5,
			"drain done": 1, "drain sooner": 2, "drain kept": 3, "drain refused": 4, "drain late": 5, "drain open": 6},
		"weir_shadow_deletes":                {"sooner": 1, "others": 2, "kept": 3},
		"weir_shadow_differences":            {"": 5},
		"weir_shadow_differences_on_purpose": {"": 9},
		"weir_shadow_lag_seconds":            {"": 2},
	} {
		if diff := cmp.Diff(want, fixture.Counts(t, registry, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatWasRestoredIsComparedAgain: what was decided about a history that is over is no
// difference, and is no reason on purpose.
func TestWhatWasRestoredIsComparedAgain(t *testing.T) {
	st := newStage(t)
	st.see("lives", nil)
	st.see("leaf", nil, own("lives"))
	st.see("leaf", nil, own("lives", misnamed)) // would be on purpose
	st.Rewound("v1")
	if r := st.now(); r.Decisions["delete"][report.Withdrawn] != 1 || r.Decisions["delete"]["open"] != 0 {
		t.Errorf("%+v", r)
	}
	st.decide("leaf")
	if d := st.ledger.open[types.UID("leaf")]; d == nil || d.purpose != "" {
		t.Errorf("decided again: %+v", d)
	}
}

// TestWhatIsLateIsJudgedByOneClock: what becomes late while others are judged is no difference yet,
// because its purpose was not looked for.
func TestWhatIsLateIsJudgedByOneClock(t *testing.T) {
	st := newStage(t)
	st.see("own", foreground, own("own", blocking))
	since := st.ledger.open["own"].since
	if late, _ := st.overdue(since.Add(DefaultLate - 1)); len(late) > 0 {
		t.Errorf("before its time: %+v", late)
	}
	if late, _ := st.overdue(since.Add(DefaultLate)); len(late) != 1 || late[0].OnPurpose != ownBlock {
		t.Errorf("%+v, want one on purpose: %s", late, ownBlock)
	}
}

// TestWhatIsNotFollowedAnyMoreWasNotCarriedOut: a kind that is not served for a moment, or whose
// history went back, leaves the graph, and its objects are still there.
func TestWhatIsNotFollowedAnyMoreWasNotCarriedOut(t *testing.T) {
	for name, leaves := range map[string]graph.Event{"not served": graph.Stopped{Kind: configMaps}, "its history went back": graph.KindRewound{Kind: configMaps}} {
		st := newStage(t)
		st.see("leaf", nil, own("never"))
		st.Store.Apply(leaves)
		st.sweep(t.Context())
		if of := st.now().Decisions["delete"]; of[report.Withdrawn] != 1 || of[report.Done] != 0 || of["open"] != 0 {
			t.Errorf("%s: %v, want it withdrawn", name, of)
		}
	}
}

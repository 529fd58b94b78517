package shadow

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// stage is a Shadow with its metrics and its log.
type stage struct {
	*scene
	registry *prometheus.Registry
	lines    []string // of the log
}

func newStage(t *testing.T) *stage {
	t.Helper()
	st := &stage{registry: prometheus.NewRegistry()}
	o := Options{Store: follow.NewStore(), Ready: func() error { return nil }, Undiscovered: func() []string { return nil }, Registry: st.registry, Log: funcr.New(func(_, line string) { st.lines = append(st.lines, line) }, funcr.Options{})}
	st.scene = &scene{t, New(o)}
	st.Store.Apply(
		graph.Serving{Resources: []graph.Resource{fixture.Kinds[0]}}, graph.ListBegins{Kind: configMaps}, graph.ListEnds{Kind: configMaps})
	return st
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

// TestWhatIsLateIsToldOnceAndAsMetrics: the time counts from when it ran, not as a standby.
func TestWhatIsLateIsToldOnceAndAsMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		<-time.After(time.Hour) // as a standby
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		began := time.Now()
		go func() { st.Shadow.Run(ctx); close(done) }()
		synctest.Wait()
		if r := st.now(); !r.Since.Equal(began) {
			t.Errorf("it compares since %s, want from when it ran, %s", r.Since, began)
		}
		st.see("dies", nil)
		st.see("leaf", nil, own("dies"))
		st.gone("dies")
		st.decide("leaf")
		<-time.After(2 * DefaultLate)
		cancel()
		<-done
		if r := st.now(); len(r.Differences) != 1 {
			t.Errorf("%+v, want one difference", r)
		}
		want := map[string]float64{"delete late": 1, "delete open": 1}
		if diff := cmp.Diff(want, fixture.Counts(t, st.registry, "weir_shadow_decisions")); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		if lines := st.told("the cluster has not done what Weir would do"); len(lines) != 1 || !strings.Contains(lines[0], `"object"="configmaps shop/leaf"`) {
			t.Errorf("the log says %q", lines)
		}
	})
}

// TestMetricsSayWhatTheReportSays: each series, with what it is called by.
func TestMetricsSayWhatTheReportSays(t *testing.T) {
	registry := prometheus.NewRegistry()
	newMetrics(registry).set(report.Report{
		Decisions:   map[string]map[string]int{"delete": {report.Done: 1, "open": 2}, "release": {report.Withdrawn: 3}, "unblock": {report.Late: 4}, "unfinalize": {report.Done: 5}},
		Deletes:     map[string]int{report.Sooner: 1, report.Others: 2, report.Kept: 3},
		Differences: append(make([]report.Difference, 2), report.Difference{OnPurpose: "a"}), More: 3,
	})
	for name, want := range map[string]map[string]float64{
		"weir_shadow_decisions":              {"delete done": 1, "delete open": 2, "release withdrawn": 3, "unblock late": 4, "unfinalize done": 5},
		"weir_shadow_deletes":                {"sooner": 1, "others": 2, "kept": 3},
		"weir_shadow_differences":            {"": 5},
		"weir_shadow_differences_on_purpose": {"": 1},
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
		st.sweep()
		if of := st.now().Decisions["delete"]; of[report.Withdrawn] != 1 || of[report.Done] != 0 || of["open"] != 0 {
			t.Errorf("%s: %v, want it withdrawn", name, of)
		}
	}
}

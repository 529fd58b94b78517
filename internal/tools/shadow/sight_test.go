package shadow

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// served is a kind that the graph follows.
func served(resource string, state graph.ListState) graph.KindStats {
	return graph.KindStats{Resource: graph.Resource{Resource: resource, Namespaced: true, Collected: true, Deletable: true, Listable: true}, Served: true, State: state, Reason: "no answer"}
}

// TestOnlyTheTimeInWhichAllIsSeenCounts: between two looks that both saw all.
func TestOnlyTheTimeInWhichAllIsSeenCounts(t *testing.T) {
	type look struct {
		after  time.Duration
		unseen string
		want   time.Duration
	}
	const s = time.Second
	for name, looks := range map[string][]look{
		"all is seen":              {{0, "", 0}, {s, "", s}, {3 * s, "", 4 * s}},
		"the machine slept":        {{0, "", 0}, {24 * time.Hour, "", 5 * s}, {s, "", 6 * s}},
		"never seen":               {{0, "pods", 0}, {s, "pods", 0}, {s, "pods", 0}},
		"seen late":                {{0, "pods", 0}, {5 * s, "pods", 0}, {s, "", 0}, {s, "", s}},
		"lost for a while":         {{0, "", 0}, {3 * s, "", 3 * s}, {s, "pods", 3 * s}, {s, "", 3 * s}, {s, "", 4 * s}},
		"one of two is back":       {{0, "pods", 0}, {4 * s, "pods jobs", 0}, {s, "jobs", 0}},
		"it was a moment at first": {{0, "", 0}, {s, "pods", 0}, {s, "", 0}},
		"nothing is listed":        {{0, "not ready", 0}, {s, "not ready", 0}, {s, "", 0}, {s, "", s}},
	} {
		t.Run(name, func(t *testing.T) {
			var of sight
			now := start
			for i, l := range looks {
				now = now.Add(l.after)
				var unseen []report.Unseen
				if l.unseen != "" && l.unseen != "not ready" {
					unseen = []report.Unseen{{What: l.unseen}}
				}
				if of.look(now, l.unseen != "not ready", unseen); of.compared != l.want {
					t.Errorf("look %d: %s, want %s", i, of.compared, l.want)
				}
			}
		})
	}
}

// TestEachKindThatIsNotSeenIsNamed with the reason, and no kind that the graph never has.
func TestEachKindThatIsNotSeenIsNamed(t *testing.T) {
	behind, events, former := served("pods", graph.Behind), served("events", graph.Unwatched), served("widgets", graph.Failing)
	behind.Reason, events.Collected, former.Served = "Unauthorized", false, false
	got := notSeen([]graph.KindStats{served("configmaps", graph.Synced), behind, events, former, served("a", graph.Listing), served("b", graph.Slow), served("c", graph.Failing),
		served("d", graph.Forbidden), served("e", graph.Unwatched)}, []string{"metrics.k8s.io/v1"})
	want := []report.Unseen{
		{What: "pods", Why: "its watch is broken: Unauthorized"}, {What: "a", Why: "it is not listed yet"}, {What: "b", Why: "it is not listed yet"},
		{What: "c", Why: "it cannot be listed: no answer"}, {What: "d", Why: "Weir may not list it: no answer"}, {What: "e", Why: "it is not listed yet"},
		{What: "metrics.k8s.io/v1", Why: "the group does not answer, and which kinds it has is not known"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheGateIsClosedWhileAKindIsNotSeen although nothing differs: a process whose watches are
// broken compares nothing.
func TestTheGateIsClosedWhileAKindIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		pass := func(seconds int) {
			for range seconds {
				<-time.After(time.Second)
				st.sweep()
			}
		}
		gate := func() string {
			r := st.now()
			return fmt.Sprint(r.Gate(report.Gate{Lasted: 10 * time.Second}))
		}
		st.sweep()
		pass(9)
		if got, want := gate(), "it has compared for 9s, and not for 10s yet"; got != want {
			t.Errorf("after 9 s: %s, want %s", got, want)
		}
		st.Store.Apply(graph.FellBehind{Kind: configMaps, Reason: "Unauthorized"})
		pass(3600)
		if got := gate(); !strings.HasPrefix(got, "it has compared for 9s, and not for 10s yet\ncannot see configmaps (its watch is broken: Unauthorized), ") {
			t.Errorf("behind: %s", got)
		}
		st.Store.Apply(graph.ListBegins{Kind: configMaps})
		st.Store.Apply(graph.ListEnds{Kind: configMaps})
		pass(1)
		if got, want := gate(), "it has compared for 9s, and not for 10s yet"; got != want {
			t.Errorf("seen again: %s, want %s", got, want)
		}
		pass(1)
		if got := gate(); got != "<nil>" {
			t.Errorf("in the end: %s", got)
		}
	})
}

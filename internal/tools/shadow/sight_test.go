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

// TestOnlyTheTimeInWhichAllIsSeenCounts: what is not seen is told with how much was compared
// before, and what was compared without it does not count once it is seen again.
func TestOnlyTheTimeInWhichAllIsSeenCounts(t *testing.T) {
	type look struct {
		after  time.Duration
		unseen string
		want   string // how much was compared, and before each was lost
	}
	for name, looks := range map[string][]look{
		"all is seen":              {{0, "", "0s"}, {time.Second, "", "1s"}, {3 * time.Second, "", "4s"}},
		"the machine slept":        {{0, "", "0s"}, {24 * time.Hour, "", "5s"}, {time.Second, "", "6s"}},
		"never seen":               {{0, "pods", "0s pods 0s"}, {time.Second, "pods", "1s pods 0s"}, {time.Second, "pods", "2s pods 0s"}},
		"seen late":                {{0, "pods", "0s pods 0s"}, {5 * time.Second, "pods", "5s pods 0s"}, {time.Second, "", "0s"}, {time.Second, "", "1s"}},
		"lost for a while":         {{0, "", "0s"}, {3 * time.Second, "", "3s"}, {time.Second, "pods", "4s pods 3s"}, {time.Second, "", "3s"}, {time.Second, "", "4s"}},
		"one of two is back":       {{0, "pods", "0s pods 0s"}, {4 * time.Second, "pods jobs", "4s pods 0s jobs 0s"}, {time.Second, "jobs", "0s jobs 0s"}},
		"what was lost later":      {{0, "jobs", "0s jobs 0s"}, {4 * time.Second, "jobs", "4s jobs 0s"}, {time.Second, "pods jobs", "5s pods 4s jobs 0s"}, {time.Second, "jobs", "4s jobs 0s"}},
		"it was a moment at first": {{0, "", "0s"}, {time.Second, "pods", "1s pods 0s"}, {time.Second, "", "0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s sight
			now := start
			for i, l := range looks {
				now = now.Add(l.after)
				var unseen []report.Unseen
				for _, what := range strings.Fields(l.unseen) {
					unseen = append(unseen, report.Unseen{What: what})
				}
				s.look(now, true, unseen)
				var r report.Report
				s.into(&r)
				got := fmt.Sprintf("%vs", r.ComparedSeconds)
				for _, u := range r.Unseen {
					got += fmt.Sprintf(" %s %vs", u.What, u.ComparedSeconds)
				}
				if got != l.want {
					t.Errorf("look %d: %s, want %s", i, got, l.want)
				}
			}
		})
	}
}

func TestNothingIsComparedBeforeAllIsListed(t *testing.T) {
	var s sight
	for i, ready := range []bool{false, false, true, false, true} {
		s.look(start.Add(time.Duration(i)*time.Second), ready, nil)
	}
	if s.compared != 2*time.Second {
		t.Errorf("compared for %s, want the two seconds at whose end all was listed", s.compared)
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
		gate := func(accept ...string) string {
			r := st.now()
			return fmt.Sprint(r.Gate(report.Gate{Lasted: 10 * time.Second, Accept: accept}))
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
		if got := gate("cannot see configmaps"); got != "<nil>" {
			t.Errorf("accepted: %s", got)
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

func TestFewOfWhatIsNotSeenIsNamed(t *testing.T) {
	var s sight
	var unseen []report.Unseen
	for i := range mostUnseen + 3 {
		unseen = append(unseen, report.Unseen{What: fmt.Sprint(i)})
	}
	s.look(start, true, unseen)
	var r report.Report
	if s.into(&r); len(r.Unseen) != mostUnseen || r.MoreUnseen != 3 {
		t.Errorf("%d are named, and %d counted", len(r.Unseen), r.MoreUnseen)
	}
}

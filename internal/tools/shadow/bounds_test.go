package shadow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// TestAReportIsReadHoweverLongNamesAre: with all the differences that are kept, and
// names that whoever may write objects of one namespace has chosen.
func TestAReportIsReadHoweverLongNamesAre(t *testing.T) {
	largest := len(reportOf(t, `"`, 10)) // JSON writes two bytes for each
	for _, letters := range []string{`\`, "<", "x\xff", "\x1b", "\u2028", "ü"} {
		if size := len(reportOf(t, letters, 10)); size > largest {
			t.Errorf("%q: a report of %d bytes, of quotes %d", letters, size, largest)
		}
	}
	all := reportOf(t, `"`, mostDifferences+2)
	again, err := report.Read(bytes.NewReader(all))
	if err != nil {
		t.Fatalf("a report of %d bytes: %v", len(all), err)
	}
	if len(again.Differences) != mostDifferences || again.More != 2 {
		t.Errorf("%d differences, and %d more", len(again.Differences), again.More)
	}
}

// reportOf is a report of so many differences, all of whose texts are letters that users chose.
func reportOf(t *testing.T, letters string, differences int) []byte {
	t.Helper()
	const late = time.Minute
	long := strings.Repeat(letters, 3*mostWhy)
	l := NewLedger(start, late)
	for i := range differences {
		uid := types.UID(fmt.Sprintf("%036d", i))
		a := graph.Action{Verb: graph.Delete, Object: graph.Ref{Kind: configMaps, Namespace: "shop", Name: long, UID: uid}}
		a.Why = long
		l.Decided(start, uid, a, graph.View{}, true)
		if kept := l.open[uid].action.Why; len(kept) > mostWhy {
			t.Fatalf("%d bytes of a reason are kept while it is open", len(kept))
		}
	}
	l.Overdue(start.Add(late), nil)
	var unseen []report.Unseen
	for i := range 400 {
		unseen = append(unseen, report.Unseen{What: fmt.Sprintf("%063d.%0253d", i, i), Why: bounded(long, mostName)})
	}
	l.sight.look(start, true, unseen)
	r := l.Report(start, true)
	if d := r.Differences[0]; !strings.HasSuffix(d.Why, "…") || !strings.HasSuffix(d.Object, "…") {
		t.Errorf("%q: %s, because %s", letters, d.Object, d.Why)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

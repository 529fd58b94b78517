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
	const late = time.Minute
	for _, letters := range []string{`"`, `\`, "<", "x\xff", "\x1b", "\u2028", "ü"} {
		long := strings.Repeat(letters, 3*mostWhy)
		l := NewLedger(start, late)
		for i := range mostDifferences + 2 {
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
		var out bytes.Buffer
		if err := r.Write(&out); err != nil {
			t.Fatal(err)
		}
		size := out.Len()
		again, err := report.Read(&out)
		if err != nil {
			t.Fatalf("%q: a report of %d bytes: %v", letters, size, err)
		}
		if len(again.Differences) != mostDifferences || again.More != 2 {
			t.Errorf("%q: %d differences, and %d more", letters, len(again.Differences), again.More)
		}
		if d := again.Differences[0]; !strings.HasSuffix(d.Why, "…") || !strings.HasSuffix(d.Object, "…") {
			t.Errorf("%q: %s, because %s", letters, d.Object, d.Why)
		}
	}
}

package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

const (
	head = "Compared for 1h0m0s, until 2026-11-23T09:00:00Z.\n"
	// none is what a report says of objects in which nothing was decided.
	none = "Of objects with owners, 0 were deleted before Weir had decided the same, 0 by users or controllers while an owner lives.\n"
)

// TestReportIsDrawn: each part of a report, and nothing of what it does not have.
func TestReportIsDrawn(t *testing.T) {
	later := start.Add(90*time.Second + 400*time.Millisecond)
	for name, c := range map[string]struct {
		change func(*Report)
		want   string
	}{
		"nothing":           {func(*Report) {}, head + none + "No difference.\n"},
		"not all was there": {func(r *Report) { r.Ready = false }, head + "Not all kinds have been listed: much is in doubt.\n" + none + "No difference.\n"},
		"not all is seen": {func(r *Report) {
			r.Unseen = []Unseen{{"widgets.example.com", "it cannot be listed: no answer"}, {"metrics.k8s.io/v1", "the group does not answer"}}
		}, head + "Weir cannot see the following now, and compares nothing of it:\n" +
			"  widgets.example.com: it cannot be listed: no answer\n  metrics.k8s.io/v1: the group does not answer\n" + none + "No difference.\n"},
		"objects": {func(r *Report) {
			r.Decisions = map[string]map[string]int{"release": {Withdrawn: 2}, "delete": {Done: 3, Withdrawn: 1, Late: 5, "open": 4}}
			r.Deletes = map[string]int{Sooner: 6, Others: 7, Kept: 8}
		}, head +
			"delete: 3 were carried out by the cluster, 1 were withdrawn because of what was seen later, 4 are open; 5 of all were late.\n" +
			"release: 0 were carried out by the cluster, 2 were withdrawn because of what was seen later, 0 are open; 0 of all were late.\n" +
			"Of objects with owners, 6 were deleted before Weir had decided the same, 7 by users or controllers while an owner lives.\nNo difference.\n"},
		"differences": {func(r *Report) {
			r.Differences = []Difference{
				{At: start, What: Late, Verb: "release", Object: "pods shop/web", Why: "owner is gone"},
				{At: start, What: Late, Verb: "delete", Object: "pods shop/db", Why: "owner is gone", Ended: &later},
				{At: start, What: Kept, Verb: "delete", Object: "pods shop/job", Why: "in doubt"},
			}
		}, head + none + `
3 differences:
  pods shop/web: Weir would release it, and the cluster has not (owner is gone; since 2026-11-23T08:00:00Z)
  pods shop/db: Weir would delete it, and the cluster did so, or Weir thought otherwise, 1m30s later (owner is gone; since 2026-11-23T08:00:00Z)
  pods shop/job: it was deleted, and Weir would have kept it (in doubt; since 2026-11-23T08:00:00Z)
`},
		"there was no room": {func(r *Report) { r.More = 1 }, head + none + "\n1 difference:\n  and 1 more, which there was no room for; the log may name them\n"},
		"only on purpose": {func(r *Report) {
			r.Differences = []Difference{{At: start, What: Late, Verb: "release", Object: "pods shop/web", Why: "owner is gone", OnPurpose: "judged"}}
		}, head + none + `No difference but those on purpose.

1 difference on purpose:
  pods shop/web: Weir would release it, and the cluster has not (owner is gone; since 2026-11-23T08:00:00Z)
    on purpose: judged
`},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{Since: start, At: start.Add(time.Hour), ComparedSeconds: 3600, Ready: true}
			c.change(&r)
			var out bytes.Buffer
			if err := r.Draw(&out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// full takes some writes, and no more.
type full struct{ left, refused int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		f.refused++
		return 0, errFull
	}
	return len(p), nil
}

// TestReportThatCannotBeWrittenIsAnError: wherever that begins, it is told, and nothing more is
// tried.
func TestReportThatCannotBeWrittenIsAnError(t *testing.T) {
	r := Report{Since: start, At: start.Add(time.Hour), Differences: append(onPurpose("", 2), onPurpose("judged", 2)...), More: 1, Unseen: []Unseen{{What: "widgets.example.com"}},
		Decisions: map[string]map[string]int{"delete": {Done: 1}}}
	var whole bytes.Buffer
	if err := r.Draw(&whole); err != nil {
		t.Fatal(err)
	}
	for n := range bytes.Count(whole.Bytes(), []byte("\n")) {
		out := &full{left: n}
		if err := r.Draw(out); err != errFull || out.refused != 1 { //nolint:errorlint // as it is
			t.Errorf("after %d lines: %v, and %d writes were tried that failed", n, err, out.refused)
		}
	}
	if err := r.Write(&full{}); !errors.Is(err, errFull) {
		t.Errorf("as JSON: %v", err)
	}
}

// TestWhatOthersHaveChosenStaysInItsLine: wherever a report that anybody may have written has a
// text, it neither begins a line of its own, nor moves the cursor, nor is a command of its own when
// what is shown is pasted.
func TestWhatOthersHaveChosenStaysInItsLine(t *testing.T) {
	const evil = "x\x1b[2J\r\nNo difference.\u202e; rm -rf /"
	tame := func(text string) *Report {
		d := Difference{What: Late, Verb: text, Object: text, UID: "1", Why: text, OnPurpose: text}
		removes := d
		removes.Verb = "delete"
		unexplained := d
		unexplained.OnPurpose = ""
		return &Report{Since: start, At: start.Add(time.Hour), Unseen: []Unseen{{What: text, Why: text}}, Decisions: map[string]map[string]int{text: {Done: 1}},
			Differences: []Difference{unexplained, d, removes}}
	}
	shown := func(r *Report) string {
		var out bytes.Buffer
		if err := r.Draw(&out); err != nil {
			t.Fatal(err)
		}
		return out.String() + r.Gate(Gate{Lasted: time.Minute}).Error()
	}
	got, plain := shown(tame(evil)), shown(tame("x"))
	if a, b := strings.Count(got, "\n"), strings.Count(plain, "\n"); a != b {
		t.Errorf("%d lines, want %d:\n%s", a, b, got)
	}
	if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%q is not to be seen in\n%q", got[i], got)
	}
	if pasted := `--accept $'x\033[2J\015\nNo difference.`; strings.Count(got, pasted) != 1 {
		t.Errorf("%d times %s in\n%s", strings.Count(got, pasted), pasted, got)
	}
}

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
			r.Unseen, r.MoreUnseen = []Unseen{{"widgets.example.com", "it cannot be listed: no answer", 600.5}, {"metrics.k8s.io/v1", "the group does not answer", 900}}, 3
		}, "Compared for 10m0s, until 2026-11-23T09:00:00Z.\nWeir cannot see the following now, and compares nothing of it:\n" +
			"  widgets.example.com: it cannot be listed: no answer\n  metrics.k8s.io/v1: the group does not answer\n  and 3 more\n" + none + "No difference.\n"},
		"too much":        {func(r *Report) { r.Forgotten = 4 }, head + none + "4 decisions were not compared, because too many were open.\nNo difference.\n"},
		"too many writes": {func(r *Report) { r.ForgottenWrites = 3 }, head + none + "3 writes of owner references were not recorded, because there were too many at once: a difference that one of them caused is not shown as on purpose.\nNo difference.\n"},
		"objects": {func(r *Report) {
			r.Decisions = map[string]map[string]int{"release": {Withdrawn: 2}, "delete": {Done: 3, Withdrawn: 1, Late: 5, "open": 4}}
			r.Deletes = map[string]int{Sooner: 6, Others: 7, Kept: 8}
			r.LagSeconds = Lag{0.25, 1.96, 12}
		}, head +
			"delete: 3 were carried out by the cluster, 1 were withdrawn because of what was seen later, 4 are open; 5 of all were late.\n" +
			"release: 0 were carried out by the cluster, 2 were withdrawn because of what was seen later, 0 are open; 0 of all were late.\n" +
			"The cluster deleted 0.2 s after Weir would have (median), 99 of 100 within 2.0 s, the last after 12.0 s.\n" +
			"Of objects with owners, 6 were deleted before Weir had decided the same, 7 by users or controllers while an owner lives.\nNo difference.\n"},
		"no delete was carried out": {func(r *Report) {
			r.Decisions, r.LagSeconds = map[string]map[string]int{"delete": {"open": 1}, "release": {Done: 1}}, Lag{77, 77, 77}
		}, head +
			"delete: 0 were carried out by the cluster, 0 were withdrawn because of what was seen later, 1 are open; 0 of all were late.\n" +
			"release: 1 were carried out by the cluster, 0 were withdrawn because of what was seen later, 0 are open; 0 of all were late.\n" + none + "No difference.\n"},
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
		"differences that are only counted": {func(r *Report) { r.More = 1 }, head + none + "\n1 difference:\n  and 1 more, which are in the log\n"},
		"only on purpose": {func(r *Report) {
			r.OnPurpose = []Difference{{At: start, What: Late, Verb: "release", Object: "pods shop/web", Why: "owner is gone", OnPurpose: "judged"}}
			r.MoreOnPurpose = 2
		}, head + none + `No difference but those on purpose.

3 differences on purpose:
  pods shop/web: Weir would release it, and the cluster has not (owner is gone; since 2026-11-23T08:00:00Z)
    on purpose: judged
  and 2 more, which are in the log
`},
		"deletes on purpose, some only counted": {func(r *Report) {
			r.MoreOnPurpose, r.MoreDeletes = 3, map[string]int{"judged": 1, "blocked": 2}
		}, head + none + `No difference.

3 differences on purpose:
  and 3 more, which are in the log

On purpose Weir would also delete what the cluster keeps. That closes the gate, unless it is accepted by its name:
  2: --accept blocked
  1: --accept judged
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

// TestReportThatCannotBeWrittenIsAnError: wherever that begins, it is told, nothing more is tried,
// and the gate is not what is told.
func TestReportThatCannotBeWrittenIsAnError(t *testing.T) {
	r := Report{Since: start, At: start.Add(time.Hour), Differences: onPurpose("", 2), OnPurpose: onPurpose("judged", 2), Forgotten: 1, Unseen: []Unseen{{What: "widgets.example.com"}}, MoreUnseen: 1, ForgottenWrites: 1,
		Decisions: map[string]map[string]int{"delete": {Done: 1}}}
	var whole bytes.Buffer
	if err := r.Draw(&whole); err != nil {
		t.Fatal(err)
	}
	for n := range bytes.Count(whole.Bytes(), []byte("\n")) {
		out := &full{left: n}
		if err := r.Show(out, Text, Gate{Lasted: time.Hour}); err != errFull || out.refused != 1 { //nolint:errorlint // as it is
			t.Errorf("after %d lines: %v, and %d writes were tried that failed", n, err, out.refused)
		}
	}
	if err := r.Show(&full{}, JSON, Gate{Lasted: time.Hour}); !errors.Is(err, errFull) {
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
		removes.Verb = deletes
		return &Report{Since: start, At: start.Add(time.Hour), Unseen: []Unseen{{What: text, Why: text}}, Decisions: map[string]map[string]int{text: {Done: 1}},
			Differences: []Difference{d}, OnPurpose: []Difference{d, removes}, MoreDeletes: map[string]int{text + text: 1}}
	}
	shown := func(r *Report) string {
		var out bytes.Buffer
		err := r.Show(&out, Text, Gate{Lasted: time.Minute})
		return out.String() + err.Error()
	}
	got, plain := shown(tame(evil)), shown(tame("x"))
	if a, b := strings.Count(got, "\n"), strings.Count(plain, "\n"); a != b {
		t.Errorf("%d lines, want %d:\n%s", a, b, got)
	}
	if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%q is not to be seen in\n%q", got[i], got)
	}
	if pasted := `--accept $'x\033[2J\015\nNo difference.`; strings.Count(got, pasted) != 4 {
		t.Errorf("%d times %s in\n%s", strings.Count(got, pasted), pasted, got)
	}
}

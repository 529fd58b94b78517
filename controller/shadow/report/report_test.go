package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func TestTheGateOpensOnlyWhereNothingWasDifferentForLongEnough(t *testing.T) {
	day := 24 * time.Hour
	good := Report{Since: start, At: start.Add(day), Ready: true}
	for name, c := range map[string]struct {
		change func(*Report)
		want   string
	}{
		"open":              {func(*Report) {}, ""},
		"too early":         {func(r *Report) { r.At = r.At.Add(-time.Second) }, "compared for 23h59m59s, and not for 24h0m0s yet"},
		"a difference":      {func(r *Report) { r.Differences = []Difference{{}} }, "1 difference"},
		"only counted":      {func(r *Report) { r.More = 2 }, "2 differences"},
		"not all was there": {func(r *Report) { r.Ready = false }, "not all kinds have been listed"},
		"it has ended":      {func(r *Report) { r.At = r.At.Add(-time.Hour); r.Since = r.Since.Add(-2 * time.Hour) }, "its process does not run any more"},
		"on purpose":        {func(r *Report) { r.OnPurpose, r.MoreOnPurpose = []Difference{{}}, 2 }, ""},
		"too much":          {func(r *Report) { r.Forgotten = 1 }, "1 decisions were not compared"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			err := r.Gate(start.Add(day), day)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestReadTakesNothingThatIsNoReport(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":          {"", "EOF"},
		"a page":           {"<html>", "invalid character"},
		"another document": {`{"kind": "Status"}`, "none of a weir in shadow mode"},
		"no moment":        {`{"since": "2026-11-23T08:00:00Z"}`, "none of a weir in shadow mode"},
		"without an end":   {`{"since": "` + strings.Repeat("0", Most), "more than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestWhatIsShownIsWhatWasWritten as JSON, and in lines of text in which nothing that others chose moves the cursor.
func TestWhatIsShownIsWhatWasWritten(t *testing.T) {
	ended := start.Add(time.Minute)
	want := Report{
		Since: start, At: start.Add(time.Hour), Ready: true, More: 2,
		Decisions:  map[string]map[string]int{"delete": {Done: 3, Late: 1}, Drain: {Done: 1}},
		Deletes:    map[string]int{Others: 1},
		LagSeconds: Lag{Median: 1, P99: 2, Most: 3},
		Differences: []Difference{{At: start, What: Late, Verb: "delete", Object: "configmaps shop/leaf", UID: "1", Why: "owner x\x1b[2J\ny is gone", Ended: &ended,
			History: []Step{{At: start, What: "delete"}, {At: ended, What: "done"}}, Skipped: 3}},
		OnPurpose: []Difference{{At: start, What: Kept, Verb: "delete", Object: "configmaps shop/other", OnPurpose: "dependents are released"}},
	}
	written, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	var asJSON, asText bytes.Buffer
	if err := got.Show(&asJSON, JSON, want.At, 0); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&asJSON)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, again); diff != "" {
		t.Errorf("what was written and what was read (-want +got):\n%s", diff)
	}
	if err := got.Show(&asText, Text, want.At, time.Hour); err == nil || !strings.Contains(err.Error(), "the gate is closed: 3 differences") {
		t.Errorf("the gate: %v", err)
	}
	for _, line := range []string{"Compared for 1h0m0s, until 2026-11-23T09:00:00Z.", "\n\n3 differences:\n",
		`(owner x\x1b[2J\ny is gone; since 2026-11-23T08:00:00Z)`, "  and 2 more, which are in the log",
		"    08:00:00 delete\n    … 3 more\n    08:01:00 done\n", "\n\n1 difference on purpose:\n  configmaps shop/other: it was deleted, and Weir would have kept it", "    on purpose: dependents are released\n"} {
		if !strings.Contains(asText.String(), line) {
			t.Errorf("there is no %q in\n%s", line, asText.String())
		}
	}
}

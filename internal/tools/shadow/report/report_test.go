package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

// onPurpose are deletes that the cluster does not do.
func onPurpose(name string, n int) (out []Difference) {
	for i := range n {
		out = append(out, Difference{What: Late, Verb: "delete", Object: fmt.Sprintf("configmaps shop/%d", i), OnPurpose: name})
	}
	return out
}

func TestTheGateOpensOnlyWhereNothingWasDifferentForLongEnough(t *testing.T) {
	day := 24 * time.Hour
	good := Report{Since: start, At: start.Add(day), ComparedSeconds: day.Seconds(), Ready: true}
	unseen := func(name string, had time.Duration) Unseen {
		return Unseen{What: name + ".example.com", Why: "it cannot be listed", ComparedSeconds: had.Seconds()}
	}
	for name, c := range map[string]struct {
		change func(*Report)
		want   string
	}{
		"open":              {func(*Report) {}, ""},
		"too early":         {func(r *Report) { r.ComparedSeconds = day.Seconds() - 0.25 }, "compared for 23h59m59s, and not for 24h0m0s yet"},
		"the clock was set": {func(r *Report) { r.Since, r.ComparedSeconds = r.Since.Add(-99*day), 3.5 }, "compared for 3s, and not for 24h0m0s yet"},
		"a kind is not seen": {func(r *Report) { r.Unseen = []Unseen{unseen("widgets", day)} },
			"cannot see widgets.example.com (it cannot be listed), and nothing of it is compared: repair that; to go on without it, --accept 'cannot see widgets.example.com'"},
		"a kind was lost":               {func(r *Report) { r.Unseen = []Unseen{unseen("widgets", time.Hour)} }, "compared for 1h0m0s, and not for 24h0m0s yet"},
		"a kind that is accepted":       {func(r *Report) { r.Unseen = []Unseen{unseen("accepted", 0)} }, ""},
		"another than what is accepted": {func(r *Report) { r.Unseen = []Unseen{unseen("accepted", 0), unseen("widgets", day)} }, "cannot see widgets.example.com"},
		"many kinds are not seen":       {func(r *Report) { r.Unseen, r.MoreUnseen = slices.Repeat([]Unseen{unseen("widgets", day)}, 7), 4 }, "cannot see 6 more kinds"},
		"kinds that are only counted":   {func(r *Report) { r.MoreUnseen = 1 }, "cannot see 1 more kind"},
		"a difference":                  {func(r *Report) { r.Differences = []Difference{{}} }, "1 difference"},
		"only counted":                  {func(r *Report) { r.More = 2 }, "2 differences"},
		"not all was there":             {func(r *Report) { r.Ready = false }, "not all kinds have been listed"},
		"on purpose, released": {func(r *Report) {
			r.OnPurpose, r.MoreOnPurpose = []Difference{{What: Late, Verb: "release", OnPurpose: "judged"}}, 2
		}, ""},
		"on purpose, kept": {func(r *Report) { r.OnPurpose = []Difference{{What: Kept, Verb: "delete", OnPurpose: "released"}} }, ""},
		"on purpose, deleted": {func(r *Report) { r.OnPurpose = onPurpose("it's judged", 1) },
			`on purpose Weir would delete what the cluster keeps (it's judged): configmaps shop/0; to keep them, repair their ownerReferences; to accept that, --accept 'it'\''s judged'`},
		"on purpose, deleted later": {func(r *Report) { r.OnPurpose = onPurpose("judged", 1); r.OnPurpose[0].Ended = &r.At }, "(judged): configmaps shop/0; "},
		"on purpose, many deleted": {func(r *Report) {
			r.OnPurpose, r.MoreOnPurpose, r.MoreDeletes = onPurpose("judged", 7), 9, map[string]int{"judged": 4, "blocked": 2}
		}, "(judged): configmaps shop/0, configmaps shop/1, configmaps shop/2, configmaps shop/3, configmaps shop/4 and 6 more; "},
		"on purpose, deleted and counted only": {func(r *Report) { r.MoreOnPurpose, r.MoreDeletes = 2, map[string]int{"judged": 2} }, "(judged): 2 more; "},
		"on purpose, deleted and accepted":     {func(r *Report) { r.OnPurpose, r.MoreDeletes = onPurpose("accepted", 2), map[string]int{"accepted": 2} }, ""},
		"on purpose, one of two is accepted":   {func(r *Report) { r.OnPurpose = append(onPurpose("accepted", 2), onPurpose("judged", 1)...) }, "(judged): configmaps shop/0; "},
		"too much":                             {func(r *Report) { r.Forgotten = 1 }, "1 decisions were not compared"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			err := r.Gate(Gate{day, []string{"accepted", "not found", "cannot see accepted.example.com"}})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestReadTakesNothingThatIsNoReport(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":          {"", "it is empty"},
		"a page":           {"<html>", "invalid character"},
		"another document": {`{"kind": "Status"}`, "not a report of shadow mode"},
		"no moment":        {`{"since": "2026-11-23T08:00:00Z"}`, "not a report of shadow mode"},
		"without an end":   {`{"since": "` + strings.Repeat("0", Most), "more than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestWhatIsShownIsWhatWasWritten as JSON, and in lines of text in which nothing that others chose
// moves the cursor.
func TestWhatIsShownIsWhatWasWritten(t *testing.T) {
	ended := start.Add(time.Minute)
	want := Report{
		Since: start, At: start.Add(time.Hour), ComparedSeconds: 3600.0, Ready: true, More: 2,
		Unseen:      []Unseen{{What: "widgets.example.com", Why: "no\x1b answer", ComparedSeconds: 3600}},
		Decisions:   map[string]map[string]int{"delete": {Done: 3, Late: 1}},
		Deletes:     map[string]int{Others: 1},
		LagSeconds:  Lag{Median: 1, P99: 2, Most: 3},
		Differences: []Difference{{At: start, What: Late, Verb: "delete", Object: "configmaps shop/leaf", UID: "1", Why: "owner x\x1b[2J\ny is gone", Ended: &ended}},
		OnPurpose: []Difference{{At: start, What: Kept, Verb: "delete", Object: "configmaps shop/other", OnPurpose: "dependents are released"},
			{At: start, What: Late, Verb: "delete", Object: "configmaps shop/judged", OnPurpose: "references\x1b are judged"}},
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
	if err := got.Show(&asJSON, JSON, Gate{}); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&asJSON)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, again); diff != "" {
		t.Errorf("what was written and what was read (-want +got):\n%s", diff)
	}
	if err := got.Show(&asText, Text, Gate{Lasted: time.Hour}); err == nil || !strings.Contains(err.Error(), "the gate is closed: cannot see widgets.example.com (no\\x1b answer), ") || !strings.Contains(err.Error(), "\n3 differences") {
		t.Errorf("the gate: %v", err)
	}
	for _, line := range []string{"Compared for 1h0m0s, until 2026-11-23T09:00:00Z.", "\n\n3 differences:\n",
		`(owner x\x1b[2J\ny is gone; since 2026-11-23T08:00:00Z)`, "  and 2 more, which are in the log",
		"\n\n2 differences on purpose:\n  configmaps shop/other: it was deleted, and Weir would have kept it", "    on purpose: dependents are released\n",
		"\nWeir cannot see the following now, and compares nothing of it:\n  widgets.example.com: no\\x1b answer\n",
		`    on purpose: references\x1b are judged`, "\n\nOn purpose Weir would also delete what the cluster keeps. That closes the gate, unless it is accepted by its name:\n  1: --accept $'references\\033 are judged'\n"} {
		if !strings.Contains(asText.String(), line) {
			t.Errorf("there is no %q in\n%s", line, asText.String())
		}
	}
}

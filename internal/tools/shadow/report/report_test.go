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
	unseen := func(name string) Unseen { return Unseen{What: name + ".example.com", Why: "it cannot be listed"} }
	for name, c := range map[string]struct {
		change func(*Report)
		want   string
	}{
		"open":              {func(*Report) {}, ""},
		"too early":         {func(r *Report) { r.ComparedSeconds = day.Seconds() - 0.25 }, "compared for 23h59m59s, and not for 24h0m0s yet"},
		"the clock was set": {func(r *Report) { r.Since, r.ComparedSeconds = r.Since.Add(-99*day), 3.5 }, "compared for 3s, and not for 24h0m0s yet"},
		"a kind is not seen": {func(r *Report) { r.Unseen = []Unseen{unseen("widgets")} },
			"cannot see widgets.example.com (it cannot be listed), and nothing of it is compared: repair that, or leave the kind alone with --ignore of weir controller"},
		"many kinds are not seen": {func(r *Report) { r.Unseen = slices.Repeat([]Unseen{unseen("widgets")}, 11) }, "cannot see 6 more"},
		"a difference":            {func(r *Report) { r.Differences = []Difference{{}} }, "1 difference"},
		"only counted":            {func(r *Report) { r.More = 2 }, "2 differences"},
		"not all was there":       {func(r *Report) { r.Ready = false }, "not all kinds have been listed"},
		"on purpose, released":    {func(r *Report) { r.Differences = []Difference{{What: Late, Verb: "release", OnPurpose: "judged"}} }, ""},
		"on purpose, kept":        {func(r *Report) { r.Differences = []Difference{{What: Kept, Verb: "delete", OnPurpose: "released"}} }, ""},
		"on purpose, deleted": {func(r *Report) { r.Differences = onPurpose("it's judged", 1) },
			`on purpose Weir would delete what the cluster keeps (it's judged): configmaps shop/0; to keep them, repair their ownerReferences; to accept that, --accept 'it'\''s judged'`},
		"on purpose, deleted later": {func(r *Report) { r.Differences = onPurpose("judged", 1); r.Differences[0].Ended = &r.At }, "(judged): configmaps shop/0; "},
		"on purpose, many deleted": {func(r *Report) { r.Differences = onPurpose("judged", 11) },
			"(judged): configmaps shop/0, configmaps shop/1, configmaps shop/2, configmaps shop/3, configmaps shop/4 and 6 more; "},
		"on purpose, deleted and accepted":   {func(r *Report) { r.Differences = onPurpose("accepted", 2) }, ""},
		"on purpose, one of two is accepted": {func(r *Report) { r.Differences = append(onPurpose("accepted", 2), onPurpose("judged", 1)...) }, "(judged): configmaps shop/0; "},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			err := r.Gate(Gate{day, []string{"accepted", "not found"}})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestReadTakesNothingThatIsNoReport(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":               {"", "EOF"},
		"cut off":               {`{"since": "2026-11-23T08:00:00Z",`, "unexpected EOF"},
		"a page":                {"<html>", "invalid character"},
		"null":                  {"null", "not a report of shadow mode"},
		"another document":      {`{"kind": "Status"}`, "not a report of shadow mode"},
		"no moment":             {`{"since": "2026-11-23T08:00:00Z"}`, "not a report of shadow mode"},
		"counts that are words": {`{"more": "many"}`, "cannot unmarshal"},
		"without an end":        {`{"since": "` + strings.Repeat("0", Most), "more than 16 MiB"},
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
		Unseen:    []Unseen{{What: "widgets.example.com", Why: "no\x1b answer"}},
		Decisions: map[string]map[string]int{"delete": {Done: 3, Late: 1}},
		Deletes:   map[string]int{Others: 1},
		Differences: []Difference{{At: start, What: Late, Verb: "delete", Object: "configmaps shop/leaf", UID: "1", Why: "owner x\x1b[2J\ny is gone", Ended: &ended},
			{At: start, What: Kept, Verb: "delete", Object: "configmaps shop/other", OnPurpose: "dependents are released"},
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
	if err := got.Write(&asJSON); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&asJSON)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, again); diff != "" {
		t.Errorf("what was written and what was read (-want +got):\n%s", diff)
	}
	if err := got.Draw(&asText); err != nil {
		t.Fatal(err)
	}
	if err := got.Gate(Gate{Lasted: time.Hour}); err == nil || !strings.HasPrefix(err.Error(), "cannot see widgets.example.com (no\\x1b answer), ") || !strings.Contains(err.Error(), "\n3 differences") {
		t.Errorf("the gate: %v", err)
	}
	for _, line := range []string{"Compared for 1h0m0s, until 2026-11-23T09:00:00Z.", "\n\n3 differences:\n",
		`(owner x\x1b[2J\ny is gone; since 2026-11-23T08:00:00Z)`, "  and 2 more, which there was no room for",
		"\n\n2 differences on purpose:\n  configmaps shop/other: it was deleted, and Weir would have kept it", "    on purpose: dependents are released\n",
		"\nWeir cannot see the following now, and compares nothing of it:\n  widgets.example.com: no\\x1b answer\n",
		`    on purpose: references\x1b are judged`} {
		if !strings.Contains(asText.String(), line) {
			t.Errorf("there is no %q in\n%s", line, asText.String())
		}
	}
}

// TestAcceptIsForAGate: who accepts something, and asks for no gate, would think that there is one.
func TestAcceptIsForAGate(t *testing.T) {
	for _, c := range []struct {
		gate Gate
		want string
	}{
		{Gate{}, ""}, {Gate{Lasted: time.Hour}, ""}, {Gate{Lasted: time.Hour, Accept: []string{"judged"}}, ""},
		{Gate{Accept: []string{"judged"}}, "--accept is for --gate"}, {Gate{Lasted: -time.Hour}, "--gate -1h0m0s: must not be less than 0"},
	} {
		if got := c.gate.Check(); fmt.Sprint(got) != c.want && (got != nil || c.want != "") {
			t.Errorf("%+v: %v, want %q", c.gate, got, c.want)
		}
	}
}

// TestTheGateNamesAllThatStandsInTheWay at once.
func TestTheGateNamesAllThatStandsInTheWay(t *testing.T) {
	r := Report{Since: start, At: start.Add(time.Hour), ComparedSeconds: 3600, Unseen: []Unseen{{"widgets", "no answer"}}, More: 1, Differences: append(onPurpose("judged", 1), onPurpose("blocked", 1)...)}
	got := strings.Split(r.Gate(Gate{Lasted: 2 * time.Hour}).Error(), "\n")
	want := []string{"not all kinds", "it has compared for 1h0m0s", "cannot see widgets (no answer)", "1 difference", "(blocked)", "(judged)"}
	if len(got) != len(want) {
		t.Fatalf("%d errors, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}

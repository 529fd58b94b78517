package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestOnlyAReportIsReadAsOne: what is mangled, cut off, empty or endless is an error, and never a
// report in which nothing was different.
func TestOnlyAReportIsReadAsOne(t *testing.T) {
	const since, at = `"since": "2026-11-23T08:00:00Z"`, `"at": "2026-11-23T09:00:00Z"`
	pad := func(n int) string { return strings.Repeat(" ", n) }
	least := "{" + since + "," + at + "}"
	for name, c := range map[string]struct{ text, want string }{
		"a report":              {least, ""},
		"all of what is read":   {pad(Most-len(least)) + least, ""},
		"one byte too many":     {pad(Most-len(least)+1) + least, "it has more than 16 MiB"},
		"endless":               {`{"since": "` + pad(2*Most), "it has more than 16 MiB"},
		"nothing":               {"", "it is empty"},
		"cut off":               {"{" + since + ",", "it is cut off"},
		"a page of a proxy":     {"<html>", "invalid character"},
		"null":                  {"null", "it is not a report of shadow mode"},
		"an answer of others":   {`{"kind": "Status", "code": 404}`, "it is not a report of shadow mode"},
		"no beginning":          {"{" + at + "}", "it is not a report of shadow mode"},
		"no end":                {"{" + since + "}", "it is not a report of shadow mode"},
		"a report and another":  {least + least, "more follows it"},
		"a report and a word":   {least + " ok", "more follows it"},
		"counts that are words": {`{` + since + "," + at + `,"more": "many"}`, "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Read(strings.NewReader(c.text))
			if c.want == "" {
				if err != nil || !r.Since.Equal(start) || !r.At.Equal(start.Add(time.Hour)) {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want %s", r, err, c.want)
			}
		})
	}
}

func TestOutputsAreTextAndJSON(t *testing.T) {
	for output, want := range map[string]string{"text": "", "json": "", "yaml": `--output "yaml": must be text or json`, "": `--output "": must be text or json`} {
		if got := CheckOutput(output); fmt.Sprint(got) != want && (got != nil || want != "") {
			t.Errorf("%q: %v, want %q", output, got, want)
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

// TestReportIsShownWhetherTheGateIsOpenOrNot: who sees that it is closed sees why, in both outputs;
// and without a gate nothing fails.
func TestReportIsShownWhetherTheGateIsOpenOrNot(t *testing.T) {
	r := Report{Since: start, At: start.Add(time.Hour), Ready: true, More: 1}
	for output, shows := range map[string]string{Text: "1 difference:\n", JSON: "\n  \"more\": 1\n"} {
		for _, g := range []Gate{{}, {Lasted: time.Minute}} {
			var out bytes.Buffer
			err := r.Show(&out, output, g)
			if closed := err != nil; closed != (g.Lasted > 0) {
				t.Errorf("%s, a gate of %s: %v", output, g.Lasted, err)
			}
			if !strings.Contains(out.String(), shows) {
				t.Errorf("%s, a gate of %s: there is no %q in\n%s", output, g.Lasted, shows, out.String())
			}
		}
	}
}

// TestTheGateNamesAllThatStandsInTheWay at once.
func TestTheGateNamesAllThatStandsInTheWay(t *testing.T) {
	r := Report{Since: start, At: start.Add(time.Hour), ComparedSeconds: 3600, Unseen: []Unseen{{"widgets", "no answer", 3600}}, More: 1, Forgotten: 2, MoreDeletes: map[string]int{"judged": 1, "blocked": 1}}
	got := strings.Split(r.Gate(Gate{Lasted: 2 * time.Hour}).Error(), "\n")
	want := []string{"not all kinds", "it has compared for 1h0m0s", "cannot see widgets (no answer)", "1 difference", "(blocked)", "(judged)", "2 decisions were not compared"}
	if len(got) != len(want) {
		t.Fatalf("%d errors, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	clean := Report{Since: start, At: start.Add(time.Hour), ComparedSeconds: 3600, Ready: true}
	for _, output := range []string{Text, JSON} {
		if err := clean.Show(&bytes.Buffer{}, output, Gate{Lasted: time.Hour}); err != nil {
			t.Errorf("an open gate, as %s: %v", output, err)
		}
	}
}

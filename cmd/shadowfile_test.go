package cmd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// began is when the weir of the tests below began to compare.
var began = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return began.Add(d) }

// compare is a report that began so long ago, and was written so long ago, with more fields.
func comparison(began, written time.Duration, more string) string {
	now := time.Now()
	return fmt.Sprintf(`{"since": %q, "at": %q, "comparedSeconds": %v%s}`, now.Add(-began).Format(time.RFC3339Nano), now.Add(-written).Format(time.RFC3339Nano), (began - written).Seconds(), more)
}

// agreed is a report without a difference, as a file has it.
const agreed = `{"since": "2026-11-01T08:00:00Z", "at": "2026-11-02T08:00:00Z", "comparedSeconds": 86400, "ready": true, "decisions": {"delete": {"done": 3}}, "deletes": {}, "lagSeconds": {"median": 1, "p99": 2, "most": 3}, "differences": []}` + "\n"

// TestAReportIsReadWhole or not at all: one that is cut off, or followed by another, says less than
// there is, and might open a gate.
func TestAReportIsReadWhole(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a report":                     {agreed, ""},
		"of a newer version":           {strings.Replace(agreed, "{", `{"apiVersion": "v2", "seen": {"by": ["x"]}, `, 1), ""},
		"of an older version":          {`{"since": "2026-11-01T08:00:00Z", "at": "2026-11-02T08:00:00Z"}`, ""},
		"with lines after it":          {agreed + "\n \n", ""},
		"nothing":                      {"", "it is empty"},
		"an empty line":                {"\n", "it is empty"},
		"cut off":                      {agreed[:len(agreed)/2], "it is cut off"},
		"cut off at its end":           {strings.TrimSuffix(agreed, "}\n"), "it is cut off"},
		"two reports":                  {agreed + agreed, "more follows it"},
		"a report, and the rest of it": {agreed + agreed[len(agreed)/2:], "more follows it"},
		"another object":               {`{"kind": "ConfigMap", "apiVersion": "v1"}`, "it is not a report of shadow mode"},
		"no end":                       {`{"since": "2026-11-01T08:00:00Z"}`, "it is not a report of shadow mode"},
		"null":                         {"null", "it is not a report of shadow mode"},
		"a list":                       {"[" + agreed + "]", "json: cannot unmarshal array"},
		"a number for differences":     {strings.Replace(agreed, "[]", "7", 1), "json: cannot unmarshal number"},
		"what a proxy says":            {"<html>", "invalid character '<' looking for beginning of value"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := weirCommand(t, map[string]string{"shadow.json": c.text}, "shadow", "shadow.json")
			if c.want == "" && (err != nil || !strings.HasPrefix(out, "Compared f") || !strings.Contains(out, " until 2026-11-02T08:00:00Z")) {
				t.Errorf("%v:\n%s", err, out)
			}
			if c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "read the report shadow.json: "+c.want) || out != "") {
				t.Errorf("%v, want %s; it prints\n%s", err, c.want, out)
			}
		})
	}
	if _, err := weirCommand(t, map[string]string{"dir/x": ""}, "shadow", "dir"); err == nil || err.Error() != "read the report dir: read dir: is a directory" {
		t.Errorf("a directory: %v", err)
	}
}

// TestAReportIsShownBeforeItsGateFails, in both outputs: who is refused wants to know by what.
func TestAReportIsShownBeforeItsGateFails(t *testing.T) {
	const ready = `, "ready": true`
	late := ready + `, "differences": [{"what": "late", "verb": "delete", "object": "pods shop/a", "why": "its owner is gone"}]`
	unseen := ready + `, "unseen": [{"what": "widgets.example.com", "why": "no answer", "comparedSeconds": 2.5}]`
	purpose := ready + `, "onPurpose": [{"what": "late", "verb": "delete", "object": "pods shop/a", "onPurpose": "judged"}]`
	for name, c := range map[string]struct {
		text, args, err string
	}{
		"open":                    {comparison(25*time.Hour, 0, ready), "--gate 24h", ""},
		"without a gate":          {comparison(time.Hour, time.Hour, late), "", ""},
		"too early":               {comparison(2*time.Hour, 0, ready), "--gate 24h", "it has compared for 2h0m0s, and not for 24h0m0s yet"},
		"of an older weir":        {strings.Replace(comparison(25*time.Hour, 0, ready), "comparedSeconds", "forLong", 1), "--gate 24h", "the report does not say for how long it has compared: the weir that wrote it is older than this command; update it"},
		"not all is seen":         {comparison(25*time.Hour, 0, unseen), "--gate 24h", "it has compared for 2s, and not for 24h0m0s yet\ncannot see widgets.example.com (no answer), and nothing of it is compared: "},
		"it has ended":            {comparison(26*time.Hour, time.Hour, ready), "--gate 24h", "the report is 1h0m0s old: its process does not run any more"},
		"of a clock that differs": {comparison(26*time.Hour, -time.Hour, ready), "--gate 24h", "the report is of 1h0m0s from now: clocks differ, and whether its process runs is not known"},
		"a difference":            {comparison(25*time.Hour, 0, late), "--gate 24h", "1 difference"},
		"on purpose":              {comparison(25*time.Hour, 0, purpose), "--gate 24h", "on purpose Weir would delete what the cluster keeps (judged): pods shop/a; "},
		"on purpose, accepted":    {comparison(25*time.Hour, 0, purpose), "--gate 24h --accept judged", ""},
		"another is accepted":     {comparison(25*time.Hour, 0, purpose), "--gate 24h --accept others", "on purpose Weir would delete"},
		"all at once":             {comparison(3*time.Hour, time.Hour, `, "forgotten": 2`), "--gate 24h", "the report is 1h0m0s old: its process does not run any more\nnot all kinds have been listed\nit has compared for 2h0m0s, and not for 24h0m0s yet\n2 decisions were not compared"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, output := range []string{report.Text, report.JSON} {
				out, err := weirCommand(t, map[string]string{"shadow.json": c.text}, append(strings.Fields("shadow shadow.json "+c.args), "-o", output)...)
				if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), "the gate is closed: "+c.err)) {
					t.Errorf("%s: %v, want %s", output, err, c.err)
				}
				if output == report.Text && !strings.HasPrefix(out, "Compared f") {
					t.Errorf("it prints\n%s", out)
				}
				var want, got report.Report
				if output == report.JSON {
					if err := json.Unmarshal([]byte(c.text), &want); err != nil {
						t.Fatal(err)
					}
					if err := json.Unmarshal([]byte(out), &got); err != nil || !cmp.Equal(want, got) {
						t.Errorf("%v:\n%s", err, out)
					}
				}
			}
		})
	}
}

// TestAGateIsAnExitCode: what a pipe says is on stdout, and why it is closed on stderr.
func TestAGateIsAnExitCode(t *testing.T) {
	for text, want := range map[string]ended{
		comparison(25*time.Hour, 0, `, "ready": true`): {0, "Compared for 25h0m0s", ""},
		comparison(25*time.Hour, 0, ""):                {1, "Compared for 25h0m0s", "Error: the gate is closed: not all kinds have been listed\n"},
		"{":                                            {1, "", "Error: read the report -: it is cut off\n"},
	} {
		process := weirProcess(t, "shadow", "-", "--gate", "24h")
		process.Stdin = strings.NewReader(text)
		got := runProcess(t, process)
		if got.code != want.code || !strings.HasPrefix(got.out, want.out) || (got.out == "") != (want.out == "") || got.err != want.err {
			t.Errorf("%s\n%+v, want %+v", text, got, want)
		}
	}
}

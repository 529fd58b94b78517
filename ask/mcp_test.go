package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// agent is a client of the tools, with the kubeconfig of a town.
func agent(t *testing.T, w *town) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	server := toolServer([]string{"--kubeconfig=" + w.kubeconfig(""), "--namespace=shop", "--cache-dir=" + w.kept})
	served, err := server.Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = served.Wait()
	})
	return session
}

// ask asks a tool, whose answer is JSON in both forms that clients read.
func askTool(t *testing.T, session *mcp.ClientSession, tool string, args map[string]any) (r reply, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%s %v: %v: %s", tool, args, err, text)
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil || len(text) > mostReply {
		t.Errorf("%s %v: %v, %d bytes", tool, args, err, len(text))
	}
	if diff := cmp.Diff(parsed(t, text), parsed(t, string(structured))); diff != "" {
		t.Errorf("%s %v (-text +structured):\n%s", tool, args, diff)
	}
	if r.Note != theNote || !strings.HasPrefix(text, `{"note":`) {
		t.Errorf("%s %v does not begin by what the answer is: %s", tool, args, text)
	}
	return r, result.IsError
}

// TestToolsAnswerAsTheirCommands: each of them, and none of them changes anything.
func TestToolsAnswerAsTheirCommands(t *testing.T) {
	w := newMarket(t)
	session := agent(t, w)
	object := map[string]any{"type": "cm", "name": "leaf"}
	for command, c := range map[string]struct {
		tool string
		args map[string]any
	}{
		"plan cm leaf":                  {"plan", object},
		"plan cm boss --cascade=orphan": {"plan", map[string]any{"type": "cm", "name": "boss", "cascade": "orphan"}},
		"plan namespace shop":           {"plan", map[string]any{"type": "namespace", "name": "shop"}},
		"why cm held":                   {"why", map[string]any{"type": "cm", "name": "held", "namespace": "shop"}},
		"tree cm leaf":                  {"tree", object},
		"pending -A":                    {"pending", map[string]any{"allNamespaces": true}},
		"pending -n other":              {"pending", map[string]any{"namespace": "other"}},
		"orphans":                       {"orphans", nil},
		"history":                       {"history", nil},
		"history cm leaf":               {"history", object},
		"policies":                      {"policies", nil},
	} {
		t.Run(command, func(t *testing.T) {
			want := w.run(append(strings.Fields(command), "-o", "json")...)
			got, failed := askTool(t, session, c.tool, c.args)
			if want.failed != nil || failed {
				t.Fatal(want.failed, got.Error)
			}
			if diff := cmp.Diff(parsed(t, want.out), got.Answer); diff != "" {
				t.Errorf("(-command +tool):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Fields(want.err), strings.Fields(strings.Join(got.Said, "\n"))); diff != "" {
				t.Errorf("besides (-command +tool):\n%s", diff)
			}
		})
	}
	if len(w.written) > 0 {
		t.Errorf("written: %q", w.written)
	}
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tool := range listed.Tools {
		names[tool.Name] = tool.Annotations.ReadOnlyHint
	}
	want := map[string]bool{"plan": true, "why": true, "tree": true, "pending": true, "orphans": true, "history": true, "policies": true}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools that only read (-want +got):\n%s", diff)
	}
}

// TestAToolTakesNoFlags: whatever an agent was told to write into an argument, it is asked about the
// cluster that its user chose, and writes no file.
func TestAToolTakesNoFlags(t *testing.T) {
	w := newTown(t)
	session := agent(t, w)
	for name, c := range map[string]struct {
		tool string
		args map[string]any
		says string
	}{
		"a type":              {"plan", map[string]any{"type": "--server=127.0.0.1:1", "name": "boss"}, `doesn't have a resource type "--server=127`},
		"a name":              {"plan", map[string]any{"type": "cm", "name": "--cascade=orphan"}, `"--cascade=orphan" not found`},
		"a file":              {"tree", map[string]any{"type": "-f", "name": "http://127.0.0.1:1/x"}, "resource"},
		"a namespace":         {"why", map[string]any{"type": "cm", "name": "boss", "namespace": "shop --try"}, "not found"},
		"a cascade":           {"plan", map[string]any{"type": "cm", "name": "boss", "cascade": "x --force"}, "must be background, foreground or orphan"},
		"a hidden command":    {"why", map[string]any{"type": "__complete", "name": "boss"}, `doesn't have a resource type "__complete"`},
		"another argument":    {"why", map[string]any{"type": "cm", "name": "boss", "try": true}, `unexpected additional properties ["try"]`},
		"no name":             {"why", map[string]any{"type": "cm", "name": ""}, "name an object by its type and name"},
		"no name, in history": {"history", map[string]any{"type": "cm"}, "name an object by its type and name"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
			if err != nil {
				t.Fatal(err)
			}
			if text := result.Content[0].(*mcp.TextContent).Text; !result.IsError || !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), c.says) {
				t.Errorf("it answers %s, want an error with %q", text, c.says)
			}
		})
	}
	if len(w.written) > 0 {
		t.Errorf("written: %q", w.written)
	}
}

// TestAnAnswerIsBounded: and says how much was left out.
func TestAnAnswerIsBounded(t *testing.T) {
	w := newTown(t)
	const many = 1500
	for i := range many {
		w.put(fmt.Sprintf("leaf-%04d", i), "boss")
		w.put(fmt.Sprintf("held-%04d", i), "", terminating)
	}
	session := agent(t, w)
	for tool, list := range map[string]string{"plan": "items", "tree": "dependents", "pending": "items"} {
		var args map[string]any
		if tool != "pending" {
			args = map[string]any{"type": "cm", "name": "boss"}
		}
		r, failed := askTool(t, session, tool, args)
		kept := count(r.Answer, list)
		if failed || kept < 50 || kept+r.LeftOut[list] < many {
			t.Errorf("%s: %d of %q, left out: %v; %s", tool, kept, list, r.LeftOut, r.Error)
		}
	}
}

// count counts the entries of all lists of a name.
func count(in any, list string) (n int) {
	switch v := in.(type) {
	case map[string]any:
		if l, ok := v[list].([]any); ok {
			n += len(l)
		}
		for _, x := range v {
			n += count(x, list)
		}
	case []any:
		for _, x := range v {
			n += count(x, list)
		}
	}
	return n
}

// TestWhatStrangersWriteCannotHide: nothing in an answer is there that a reader does not see, and
// one text does not crowd out the rest.
func TestWhatStrangersWriteCannotHide(t *testing.T) {
	w := newTown(t)
	const hidden = "no\u202e\x1b[2J\U000e0041 " // what turns text around, clears a screen, or is seen by models alone
	w.answer = func(r apitest.Request) *apitest.Reply {
		if strings.Contains(r.Path, "/secrets") {
			return apitest.Refuse(http.StatusForbidden, "Forbidden", hidden+strings.Repeat("x", 9000))
		}
		return nil
	}
	session := agent(t, w)
	for tool, args := range map[string]map[string]any{"pending": nil, "why": {"type": "secrets", "name": "x"}} {
		r, _ := askTool(t, session, tool, args)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), `\\u202e`) || strings.ContainsAny(string(data), "\u202e\x1b\U000e0041") || strings.Contains(string(data), `\u001b`) {
			t.Errorf("%s: %s", tool, data)
		}
		if strings.Contains(string(data), strings.Repeat("x", mostText)) {
			t.Errorf("%s: a text has more than %d bytes", tool, mostText)
		}
	}
}

// TestACallThatIsGivenUpEnds: while another has its turn.
func TestACallThatIsGivenUpEnds(t *testing.T) {
	ts := &runner{turn: make(chan struct{}, 1)}
	ts.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := ts.run(ctx, []string{"pending"}); err == nil {
		t.Error("it has run")
	}
}

package e2e

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnAgentIsAnsweredOverStdio: by the Model Context Protocol, as the command answers its user,
// and with the rights of its kubeconfig; the server ends when its input does.
func TestAnAgentIsAnsweredOverStdio(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make(`
		cm boss
		cm leaf  owners=(boss)
	`)
	var want any
	if err := json.Unmarshal([]byte(w.mustAsk("plan", "configmap", "boss", "-o", "json")), &want); err != nil {
		t.Fatal(err)
	}
	if failed, got := w.callPlan("boss"); failed || !cmp.Equal(want, got["answer"]) {
		t.Errorf("(-command +tool):\n%s", cmp.Diff(want, got["answer"]))
	}
	said := `configmaps "boss" is forbidden: User "nobody" cannot get resource`
	if failed, got := w.callPlan("boss", "--as=nobody"); !failed || !strings.Contains(got["error"].(string), said) {
		t.Errorf("as nobody: %v, want an error with %q", got, said)
	}
}

// callPlan asks a server for the plan of a ConfigMap's delete.
func (w *fixture) callPlan(name string, flags ...string) (failed bool, reply map[string]any) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), shared.plugin, append([]string{"mcp", "-n", w.namespace,
		"--kubeconfig", w.plane.Kubeconfig, "--cache-dir", w.TempDir()}, flags...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	if _, err := io.WriteString(in, `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {`+
		`"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}`+"\n"+
		`{"jsonrpc": "2.0", "method": "notifications/initialized"}`+"\n"+
		`{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {`+
		`"name": "plan", "arguments": {"type": "configmap", "name": "`+name+`"}}}`+"\n"); err != nil {
		w.Fatal(err)
	}
	var answer struct {
		ID     int
		Result struct {
			IsError           bool
			StructuredContent map[string]any
		}
	}
	for read := json.NewDecoder(out); answer.ID != 2; {
		if err := read.Decode(&answer); err != nil {
			w.Fatal(err)
		}
	}
	if err := in.Close(); err != nil {
		w.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		w.Errorf("at the end of its input: %v", err)
	}
	return answer.Result.IsError, answer.Result.StructuredContent
}

//go:build stories

package stories

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-dev/weir/e2e/weir"
)

// shadow: before anything is handed to Weir it only looks on, and kubectl weir shadow tells what it
// has found, through a port that kubectl forwards. It is told first: the next story upgrades to
// companion mode.
func (s *story) shadow() {
	plugin, err := weir.Plugin(s.Context(), s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	mustSay := func(out string, says ...string) {
		s.Helper()
		for _, want := range says {
			if !strings.Contains(out, want) {
				s.Errorf("kubectl weir shadow says\n%s\nwhich does not have\n%s", out, want)
			}
		}
	}
	s.helm("upgrade", "--install", "weir", chart, "--create-namespace", "--wait", "--timeout", "3m", "--set", "mode=shadow")
	release.installed, release.extra = true, []string{"mode=shadow"}
	address, end, err := forward(s.Context(), "deployment/weir-controller", "8089")
	if err != nil {
		s.Fatal(err)
	}
	defer end()
	ask := func(args ...string) (string, error) {
		out, err := program(s.Context(), plugin, append([]string{"shadow", "--url", "http://" + address}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}

	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner}\n")
	owner := s.must("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: leaf, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: " + owner + "}]}\n")
	s.must("delete", "configmap", "owner")
	s.until("the cluster did what Weir would have done", func(context.Context) error {
		out, err := ask("-o", "json")
		var r struct{ Decisions, Deletes map[string]any }
		if err == nil {
			err = json.Unmarshal([]byte(out), &r)
		}
		if deletes, _ := r.Decisions["delete"].(map[string]any); err == nil && deletes["done"] == nil && r.Deletes["sooner"] == nil {
			err = fmt.Errorf("decisions %v, deletes %v", r.Decisions, r.Deletes)
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	var out string
	s.until("the gate of a moment is open", func(context.Context) error {
		out, err = ask("--gate", "1ms")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	mustSay(out, "Compared for ", "No difference") // or none but those on purpose
	if out, err = ask("--gate", "24h"); err == nil {
		s.Error("the gate of a day is open")
	}
	s.Log(out)
	mustSay(out, "the gate is closed: it has compared for ", "not for 24h0m0s yet")
}

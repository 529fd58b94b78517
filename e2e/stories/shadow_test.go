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
// has found, to who may have a port of its pod forwarded and to no other user. It is told first:
// the next story upgrades to companion mode.
func (s *story) shadow() {
	plugin, err := weir.Plugin(s.Context(), s.TempDir())
	if err != nil {
		s.Fatal(err)
	}
	ask := func(args ...string) (string, error) {
		out, err := program(s.Context(), plugin, append([]string{"shadow", "--cache-dir", cluster.dir}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
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

	s.must("create", "role", "looker", "-n", weirNamespace, "--verb=list", "--resource=pods")
	s.must("create", "rolebinding", "looker", "-n", weirNamespace, "--role=looker", "--user=looker")
	if out, err = ask("--as", "looker"); err == nil {
		s.Error("who may not have a port forwarded is answered")
	}
	mustSay(out, "the right to create pods/portforward in that namespace")
	s.must("create", "role", "asker", "-n", weirNamespace, "--verb=create", "--resource=pods/portforward")
	s.must("create", "rolebinding", "asker", "-n", weirNamespace, "--role=asker", "--user=looker")
	s.until("who may have a port forwarded is answered", func(context.Context) error {
		out, err = ask("--as", "looker")
		return err
	})
	mustSay(out, "Compared for ")
	s.must("delete", "role,rolebinding", "looker", "asker", "-n", weirNamespace)

	s.weir()
	if out, err = ask(); err == nil {
		s.Error("a Weir in companion mode answers what it compared")
	}
	mustSay(out, "runs in companion mode and compares nothing")
}

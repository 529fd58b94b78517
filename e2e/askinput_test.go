//go:build full

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestObjectsAreMeantInEachWayOfKubectl: by files, labels, and all of a type; several are one plan, and each output tells the same.
func TestObjectsAreMeantInEachWayOfKubectl(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{}) // whose default namespaces have nothing else of these kinds
	w.make(`
		cm  boss-1
		cm  boss-2
		sec leaf-1  owners=(boss-1)
		sec leaf-2  owners=(boss-2)
	`)
	w.patch("boss-1", `{"metadata": {"labels": {"app": "web"}}}`)
	file := filepath.Join(t.TempDir(), "objects.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: boss-1}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: boss-2}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := "/" + w.namespace + "/"
	one := []string{"configmaps" + at + "boss-1", "secrets" + at + "leaf-1"}
	both := []string{"configmaps" + at + "boss-1", "configmaps" + at + "boss-2", "secrets" + at + "leaf-1", "secrets" + at + "leaf-2"}
	for ask, want := range map[string][]string{
		"cm boss-1": one, "cm/boss-1": one, "cm -l app=web": one, "cm boss-1 boss-2": both, "cm/boss-1 secret/leaf-2": {one[0], both[3], one[1]}, "-f " + file: both,
	} {
		args := append([]string{"plan"}, strings.Fields(ask)...)
		if out := w.mustAsk(append(args, "-o", "name")...); out != strings.Join(want, "\n")+"\n" {
			t.Errorf("plan %s -o name:\n%swant\n%s", ask, out, strings.Join(want, "\n"))
		}
	}
	w.mustSay(w.mustAsk("plan", "cm", "--all"), "configmaps/boss-1, boss-2", "Plan: ")

	var asYAML, asJSON map[string]any
	if err := yaml.Unmarshal([]byte(w.mustAsk("plan", "cm", "boss-1", "-o", "yaml")), &asYAML); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(w.mustAsk("plan", "cm", "boss-1", "-o", "json")), &asJSON); err != nil {
		t.Fatal(err)
	}
	if asYAML["apiVersion"] != "insight.weir.dev/v1alpha1" || asYAML["summary"] != asJSON["summary"] || asYAML["summary"] != "Plan: 2 objects are deleted in 2 steps." {
		t.Errorf("as YAML %v, as JSON %v", asYAML["summary"], asJSON["summary"])
	}
	if out := w.mustAsk("plan", "cm", "boss-1"); strings.Contains(out, "\x1b") {
		t.Errorf("colours, and no terminal: %q", out)
	}
}

// TestBadNamesGetClearAnswers: several objects where one is meant, types that cannot be read, and types of which there are two.
func TestBadNamesGetClearAnswers(t *testing.T) {
	t.Parallel()
	w := newCluster(t, plane.Options{})
	w.make(`
		cm boss-1
		cm boss-2
	`)
	w.define(w.definition("ConfigMap", "Namespaced", "v1"))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"tree", "cm", "boss-1", "boss-2"}, "name one object: these are 2"},
		{[]string{"why", "cm/boss-1", "cm/boss-2"}, "name one object: these are 2"},
		{[]string{"tree", "cm", "boss-1", "boss-2", "--watch"}, "name one object: these are 2"},
		{[]string{"plan", "tokenreviews", "x"}, "the server"},
		{[]string{"tree", "cm", "-l", "app=nothing"}, "unknown shorthand flag"},
		{[]string{"plan", "-f", "no-such-file.yaml"}, "no-such-file.yaml"},
		{[]string{"plan", "cm", "boss-1", "--all"}, "name"},
	} {
		out, said, code := w.ask(w.plane.Kubeconfig, append(c.args, "-n", w.namespace)...)
		if code != 1 || out != "" || !strings.Contains(said, c.says) {
			t.Errorf("weir %s: exit code %d\n%s%s\nwant %q", strings.Join(c.args, " "), code, out, said, c.says)
		}
	}
	w.mustSay(w.mustAsk("plan", "cm", "-l", "app=nothing"), "Plan: nothing is deleted.")
	// Of two types of one name kubectl takes Kubernetes' own; the other is meant by its group.
	w.mustSay(w.mustAsk("plan", "configmap", "boss-1"), "- configmaps/boss-1")
	_, said, code := w.ask(w.plane.Kubeconfig, "plan", "configmap."+w.namespace+".example.com", "boss-1", "-n", w.namespace)
	if code != 1 || !strings.Contains(said, `"boss-1" not found`) {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestWhoStopsReadingEndsIt: as head does, without a word and without a panic.
func TestWhoStopsReadingEndsIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.make("cm boss")
	for _, args := range [][]string{{"plan", "cm", "boss"}, {"why", "cm", "boss"}, {"tree", "cm", "boss"}, {"orphans"}, {"pending", "-o", "yaml"}} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), shared.plugin, append(args, "-n", w.namespace, "--kubeconfig", w.plane.Kubeconfig, "--cache-dir", t.TempDir())...)
		cmd.Stdout, cmd.Stderr = writer, &said
		err = cmd.Run()
		if closed := writer.Close(); closed != nil {
			t.Fatal(closed)
		}
		if err == nil || cmd.ProcessState.Exited() || said.Len() > 0 {
			t.Errorf("weir %s ended with %v, and said %q: want the end of a pipe", strings.Join(args, " "), err, &said)
		}
	}
	if o, err := w.at(w.of("boss")).Get(t.Context(), "boss", metav1.GetOptions{}); err != nil || o.GetDeletionTimestamp() != nil {
		t.Errorf("boss: %v", err)
	}
}

//go:build full

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

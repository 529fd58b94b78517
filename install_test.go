//go:build full

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGoInstallMakesThePlugin: kubectl-weir is made of the files that a fetched module has, which
// are none of modules below it, and by a go.mod without what go install refuses.
func TestGoInstallMakesThePlugin(t *testing.T) {
	for line := range strings.Lines(read(t, "go.mod")) {
		if words := strings.Fields(line); len(words) > 0 && (words[0] == "replace" || words[0] == "exclude") {
			t.Errorf("go install refuses a module with: %s", line)
		}
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	files := strings.Fields(run(".", "git", "ls-files"))
	module := t.TempDir()
	for _, file := range files {
		if slices.ContainsFunc(files, func(mod string) bool {
			return strings.HasSuffix(mod, "/go.mod") && strings.HasPrefix(file, strings.TrimSuffix(mod, "go.mod"))
		}) {
			continue
		}
		to := filepath.Join(module, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(read(t, file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(module, "go", "build", "-mod=readonly", "-o", "kubectl-weir", "./cmd/kubectl-weir")
	if says := run(module, "./kubectl-weir", "plan", "--help"); !strings.Contains(says, "Show what a delete would do") {
		t.Errorf("it says %s", says)
	}
}

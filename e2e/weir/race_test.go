//go:build full

package weir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/e2e/weir"
)

// racing is a program with a data race that the detector sees each time.
const racing = `package main

func main() {
	n, done := 0, make(chan bool)
	go func() { n++; done <- true }()
	n++
	<-done
}
`

func TestRaceInAProcessIsFound(t *testing.T) {
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "racing")
	if err := os.WriteFile(source, []byte(racing), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CGO_ENABLED", "1")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Setenv("WEIR", binary)
	for range 2 { // a report is told once
		path, err := weir.Binary(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := weir.Races(); err != nil {
			t.Errorf("before it ran: %v", err)
		}
		if _, err := weir.Binary(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		_ = exec.CommandContext(t.Context(), path).Run() // its exit status says the same
		if err := weir.Races(); err == nil || !strings.Contains(err.Error(), "WARNING: DATA RACE") {
			t.Errorf("found: %v", err)
		}
	}
}

package e2e

import (
	"errors"
	"os/exec"
)

// command runs weir to its end, and returns all that it printed and its exit code.
func (w *fixture) command(args ...string) (out string, code int) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), shared.binary, args...)
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

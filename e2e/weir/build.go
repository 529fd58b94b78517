package weir

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Binary returns the weir binary to test: the one that the environment variable WEIR names, or one
// that is built into dir from the module around this one. Whoever runs it asks for Races at the
// end.
func Binary(ctx context.Context, dir string) (string, error) { return binary(ctx, "WEIR", dir) }

// RacingBinary is Binary for tests that kill and compare: one with the race detector where
// WEIR_RACE names it.
func RacingBinary(ctx context.Context, dir string) (string, error) {
	if os.Getenv("WEIR_RACE") == "" {
		return Binary(ctx, dir)
	}
	return binary(ctx, "WEIR_RACE", dir)
}

func binary(ctx context.Context, variable, dir string) (string, error) {
	if err := gatherRaces(); err != nil {
		return "", err
	}
	return built(ctx, variable, dir, "weir", ".")
}

// Plugin is Binary for the plugin of kubectl, which KUBECTL_WEIR names.
func Plugin(ctx context.Context, dir string) (string, error) {
	return built(ctx, "KUBECTL_WEIR", dir, "kubectl-weir", "./cmd/kubectl-weir")
}

// built is the binary that an environment variable names, or one that is built of a package.
func built(ctx context.Context, variable, dir, name, pkg string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return Named(path)
	}
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", fmt.Errorf("build %s: its source is not known here; set %s to a binary", name, variable)
	}
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, pkg)
	cmd.Dir = filepath.Join(filepath.Dir(file), "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// Named checks that there is a binary, before anything expensive is started for
// it.
func Named(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find weir: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find weir: %w", err)
	}
	return path, nil
}

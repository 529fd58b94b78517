//go:build full

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestWrongStartEndsAtOnceAndSaysWhy: what a user got wrong is not to look like a
// slow start.
func TestWrongStartEndsAtOnceAndSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(shared.plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(shared.plane.Config.Host, "https://")
	dead := fmt.Sprintf("127.0.0.1:%d", port)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"missing kubeconfig":   {[]string{"controller", "--kubeconfig", filepath.Join(dir, "missing")}, "missing: no such file or directory"},
		"garbage kubeconfig":   {[]string{"controller", "--kubeconfig", write("garbage", "{]")}, "garbage: error loading config file"},
		"empty kubeconfig":     {[]string{"controller", "--kubeconfig", write("empty", "")}, "empty: invalid configuration"},
		"unknown context":      {[]string{"controller", "--kubeconfig", write("good", string(good)), "--context", "other"}, `context "other" does not exist`},
		"nobody there":         {[]string{"controller", "--kubeconfig", write("dead", strings.ReplaceAll(string(good), host, dead))}, "reach the API server at https://" + dead},
		"wrong certificate":    {[]string{"controller", "--kubeconfig", write("stranger", strings.ReplaceAll(string(good), host, strings.Replace(host, "127.0.0.1", "127.0.0.2", 1)))}, "reach the API server at https://127.0.0.2"},
		"unknown flag":         {[]string{"controller", "--colour"}, "unknown flag: --colour"},
		"unknown mode":         {[]string{"controller", "--mode", "destroy"}, `--mode "destroy": must be replace`},
		"no syncs":             {[]string{"controller", "--concurrent-syncs", "0"}, "--concurrent-syncs 0: must be between"},
		"short lease":          {[]string{"controller", "--leader-elect-lease-duration", "1s"}, "--leader-elect-lease-duration 1s: must be between"},
		"slash in a kind":      {[]string{"controller", "--ignore", "apps/deployments"}, `--ignore "apps/deployments": must be`},
		"no such log format":   {[]string{"controller", "--log-format", "xml"}, `--log-format "xml": must be`},
		"argument":             {[]string{"controller", "now"}, `unknown command "now"`},
		"unknown command":      {[]string{"controler"}, `unknown command "controler"`},
		"two flags at once":    {[]string{"controller", "--mode", "x", "--concurrent-syncs", "0"}, "--concurrent-syncs 0"},
		"port that is taken":   {[]string{"controller", "--kubeconfig", shared.plane.Kubeconfig, "--metrics-bind-address", host}, "address already in use"},
		"health port is taken": {[]string{"controller", "--kubeconfig", shared.plane.Kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address", host}, "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const within = 15 * time.Second // reaching for the API server may take ten
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			out, err := exec.CommandContext(ctx, shared.binary, c.args...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Fatalf("it ended with %v, want exit status 1, within %s; it said\n%s", err, within, out)
			}
			if !strings.Contains(string(out), c.want) {
				t.Errorf("it did not say %q:\n%s", c.want, out)
			}
			if strings.Contains(string(out), "goroutine ") || strings.Contains(string(out), "Usage:") {
				t.Errorf("it said more than what is wrong:\n%s", out)
			}
		})
	}
}

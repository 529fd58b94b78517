// Package helm builds Helm, which the module of the charts has, and runs it as the administrator of
// a cluster.
package helm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build returns the path of Helm 4. The go command keeps what it has built. charts is the folder of
// the charts' module.
func Build(ctx context.Context, charts string) (string, error) { return build(ctx, charts, "v4") }

// Build3 is Build for Helm 3.
func Build3(ctx context.Context, charts string) (string, error) { return build(ctx, charts, "v3") }

func build(ctx context.Context, charts, major string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "-n", "helm.sh/helm/"+major+"/cmd/helm")
	cmd.Dir = charts
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("build helm: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Command is Helm in a folder, with a kubeconfig, a namespace, and a home of its own.
func Command(ctx context.Context, path, dir, home, kubeconfig, namespace string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, append(args, "--namespace", namespace, "--kubeconfig", kubeconfig)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)
	return cmd
}

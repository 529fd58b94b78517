package certs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is the API server that the tests share; each of them works in a namespace of its own.
var server struct {
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/certs:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	stop, err := startPlane(context.Background())
	if err != nil {
		return 0, fmt.Errorf("start the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	if server.config, err = clientcmd.BuildConfigFromFlags("", server.kubeconfig); err != nil {
		return 0, err
	}
	server.config.QPS = -1 // what is asked for is what is measured
	if server.client, err = kubernetes.NewForConfig(server.config); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// startPlane runs the plane as a command: this module does not require the one that pins
// Kubernetes. A shell stands between, which ends the plane when its input does, so also when this
// process is killed.
func startPlane(ctx context.Context) (stop func() error, err error) {
	dir, err := os.MkdirTemp("", "weir-certs-")
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "plane")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/plane")
	build.Dir, build.Env = "..", append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build it: %w\n%s", err, out)
	}
	plane := exec.CommandContext(ctx, "sh", "-c", `"$0" </dev/null & cat >/dev/null; kill -TERM $!; wait $!`, binary)
	plane.Dir, plane.Stderr = "..", os.Stderr
	stdin, err := plane.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := plane.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := plane.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		_ = stdin.Close() // Wait says what went wrong
		return errors.Join(plane.Wait(), os.RemoveAll(dir))
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	kubeconfig, ok := strings.CutPrefix(strings.TrimSpace(line), "export KUBECONFIG=")
	if err != nil && !errors.Is(err, io.EOF) || !ok {
		return nil, errors.Join(fmt.Errorf("it did not say where its kubeconfig is: %q", line), err, stop())
	}
	server.kubeconfig = kubeconfig
	return stop, nil
}

// Package chart_test installs the Helm chart on a real API server: every manifest under strict
// validation, the life of a release from install to uninstall with the Helm that people use, and
// what the roles allow and do not. Pods are there and run, but there is nothing in them (kwok); in
// the controller's place runs the binary, under its ServiceAccount.
package chart_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	helmtool "github.com/weir-dev/weir/e2e/helm"
	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

const (
	charts    = "../../charts" // a module of its own, which has the Helms
	namespace = "weir-system"
	patience  = 2 * time.Minute
)

// shared is what the tests have in common.
var shared struct {
	plane   *plane.Plane
	client  kubernetes.Interface
	dynamic dynamic.Interface
	helm    string
	weir    string // the binary
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err = errors.Join(err, weir.Races()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e/chart:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background() // a signal ends this process, and that its children
	dir, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	if shared.weir, err = weir.Binary(ctx, dir); err != nil {
		return 0, err
	}
	if shared.helm, err = helmtool.Build(ctx, charts); err != nil {
		return 0, err
	}
	if shared.plane, err = plane.Start(ctx, plane.Options{
		Controllers: plane.WithoutCollectors, Scheduler: true, Kwok: true, Out: os.Stderr,
	}); err != nil {
		return 0, err
	}
	defer func() { _ = shared.plane.Stop() }() // the same
	if shared.client, err = kubernetes.NewForConfig(shared.plane.Config); err != nil {
		return 0, err
	}
	if shared.dynamic, err = dynamic.NewForConfig(shared.plane.Config); err != nil {
		return 0, err
	}
	// Pods that are not what the restricted Pod Security Standard asks for are refused here.
	ns := corev1ac.Namespace(namespace).WithLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	if _, err := shared.client.CoreV1().Namespaces().Apply(ctx, ns, metav1.ApplyOptions{FieldManager: "e2e"}); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// helm runs Helm as the cluster's administrator, and returns what it prints.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, said, err := tryHelm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return out
}

// tryHelm is helm that may fail, and says why.
func tryHelm(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	cmd := helmtool.Command(t.Context(), shared.helm, charts, t.TempDir(), shared.plane.Kubeconfig, namespace, args...)
	var text strings.Builder
	cmd.Stderr = &text
	printed, err := cmd.Output()
	return string(printed), text.String(), err
}

func until(t *testing.T, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, holds); err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
}

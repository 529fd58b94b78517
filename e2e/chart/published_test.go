//go:build release

package chart_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	helmtool "github.com/weir-dev/weir/e2e/helm"
	"github.com/weir-dev/weir/e2e/plane"
)

// hosted is what documents name, in whose place the tests have a registry and files of their own.
const (
	hostedRegistry = "ghcr.io"
	hostedFiles    = "https://github.com/weir-dev/weir/releases/latest/download/"
)

// released is the folder of a release, which make release-verify names.
func released(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(os.Getenv("WEIR_RELEASE"))
	if err != nil || os.Getenv("WEIR_RELEASE") == "" {
		t.Fatal("WEIR_RELEASE: name the folder of a release, or say make release-verify")
	}
	return dir
}

// documented is the one command of a document's blocks that begins so, as users copy it.
func documented(t *testing.T, document, begin string) []string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(begin)+`.*$`).FindAllString(string(text), -1)
	if found = slices.Compact(found); len(found) != 1 {
		t.Fatalf("%s has %d commands that begin with %q, want one", document, len(found), begin)
	}
	return strings.Fields(found[0])
}

// TestChartIsInstalledFromARegistry, with both Helms, as README.md and docs/install.md say, and asks
// for the image that is in the registry by its digest.
func TestChartIsInstalledFromARegistry(t *testing.T) {
	dir := released(t)
	address := serve(t, dir)
	charts, err := filepath.Glob(filepath.Join(dir, "weir-*.tgz"))
	if err != nil || len(charts) != 1 {
		t.Fatalf("the release has the charts %v, %v", charts, err)
	}
	helm(t, "push", charts[0], "oci://"+address+"/weir-dev/charts", "--plain-http")
	older, err := helmtool.Build3(t.Context(), "../../charts")
	if err != nil {
		t.Fatal(err)
	}
	newer := shared.helm
	defer func() { shared.helm = newer }()
	for document, path := range map[string]string{"README.md": newer, "docs/install.md": older} {
		shared.helm = path
		args := documented(t, document, "helm install weir oci://")
		for i := range args {
			args[i] = strings.Replace(args[i], hostedRegistry, address, 1)
		}
		helm(t, append(args[1:], "--timeout", "2m", "--plain-http")...)
		imageIsServed(t, address)
		helm(t, "uninstall", "weir", "--wait", "--timeout", "2m")
	}
}

// serve runs a registry that has the image, and returns its address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "release")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../cmd/release"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "serve", "--dir", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended it
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// imageIsServed: what the nodes would pull is there.
func imageIsServed(t *testing.T, address string) {
	t.Helper()
	d, err := shared.client.AppsV1().Deployments(namespace).Get(t.Context(), "weir-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image := d.Spec.Template.Spec.Containers[0].Image
	name, digest, ok := strings.Cut(image, "@")
	host, repository, _ := strings.Cut(name, "/")
	if !ok || host != hostedRegistry {
		t.Fatalf("the chart asks for %s, not for an image of %s by its digest", image, hostedRegistry)
	}
	resp, err := http.Get("http://" + address + "/v2/" + repository + "/manifests/" + digest)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the registry says of %s: %s", image, resp.Status)
	}
}

// TestInstallationWithoutHelm is applied, released and deleted as docs/install.md says. The
// namespace goes by weir gc: this control plane has no namespace controller.
func TestInstallationWithoutHelm(t *testing.T) {
	const document = "docs/install.md"
	file := filepath.Join(released(t), "install.yaml")
	bins, err := plane.Build(t.Context(), os.Stderr, plane.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	try := func(program, begin string) ([]byte, error) {
		t.Helper()
		args := documented(t, document, begin)
		for i := range args {
			args[i] = strings.Replace(args[i], hostedFiles+"install.yaml", file, 1)
		}
		args = append(args[1:], "--kubeconfig", shared.plane.Kubeconfig)
		return exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	}
	run := func(program, begin string) {
		t.Helper()
		if out, err := try(program, begin); err != nil {
			t.Fatalf("%s: %v\n%s", begin, err, out)
		}
	}
	run(bins[plane.Kubectl], "kubectl apply --server-side")
	until(t, "both workloads are available", func(ctx context.Context) (bool, error) {
		all, err := shared.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels})
		available := 0
		for _, d := range all.Items {
			if d.Status.AvailableReplicas == *d.Spec.Replicas {
				available++
			}
		}
		return available == 2, err
	})
	run(shared.weir, "weir release --stop-controller")

	gc := exec.CommandContext(t.Context(), shared.weir, "gc", "--kubeconfig", shared.plane.Kubeconfig)
	gc.Stderr = os.Stderr
	if err := gc.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gc.Wait() }) // the test's context has ended it
	const namespaceGoes = "kubectl delete namespace weir-system"
	if out, err := try(bins[plane.Kubectl], namespaceGoes); err == nil {
		t.Errorf("the namespace can be deleted before what is in it:\n%s", out)
	}
	run(bins[plane.Kubectl], "kubectl delete -l app.kubernetes.io/part-of=weir -f")
	until(t, "the policy that guards the namespace is forgotten", func(context.Context) (bool, error) {
		out, err := try(bins[plane.Kubectl], namespaceGoes)
		return err == nil || !strings.Contains(string(out), "weir-namespace"), nil
	})
	if _, err := shared.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is there: %v", err)
	}
	nothingIsLeft(t)
}

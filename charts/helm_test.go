// Package charts tests the chart with the Helms that people install it with, as binaries built from
// their modules. What a real API server says to the manifests is tested in e2e/chart.
package charts

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	yamlstream "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

const (
	helm4    = "helm.sh/helm/v4/cmd/helm"
	helm3    = "helm.sh/helm/v3/cmd/helm"
	unittest = "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"
)

// tools are the tools' binaries: the go command keeps them, and says where.
var tools = map[string]func() (string, error){helm4: built(helm4), helm3: built(helm3), unittest: built(unittest)}

func built(pkg string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		out, err := exec.Command("go", "tool", "-n", pkg).Output()
		return strings.TrimSpace(string(out)), why(err)
	})
}

// run runs a tool without the machine's settings of Helm, and returns what it prints.
func run(t *testing.T, pkg string, args ...string) (string, error) {
	t.Helper()
	tool, err := tools[pkg]()
	if err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	cmd := exec.Command(tool, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
	out, err := cmd.Output()
	return string(out), why(err)
}

func why(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// template renders the chart; Helm 3 without a cluster assumes a Kubernetes of long ago.
func template(t *testing.T, helm string, args ...string) (string, error) {
	t.Helper()
	return run(t, helm, append([]string{"template", "weir", "weir", "--namespace", "weir-system", "--kube-version", "1.36.3"}, args...)...)
}

// object is a manifest.
type object = map[string]any

func manifests(t *testing.T, text string) []object {
	t.Helper()
	var out []object
	d := yamlstream.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(o) > 0 {
			out = append(out, o)
		}
	}
}

func rendered(t *testing.T, args ...string) []object {
	t.Helper()
	text, err := template(t, helm4, args...)
	if err != nil {
		t.Fatal(err)
	}
	return manifests(t, text)
}

// at is what is found in o under a path of names.
func at(o any, path ...string) any {
	for _, p := range path {
		m, ok := o.(map[string]any)
		if !ok {
			return nil
		}
		o = m[p]
	}
	return o
}

func named(t *testing.T, all []object, kind, name string) object {
	t.Helper()
	for _, o := range all {
		if o["kind"] == kind && at(o, "metadata", "name") == name {
			return o
		}
	}
	t.Fatalf("no %s %s is rendered", kind, name)
	return nil
}

// valueSets are the files of ci/: what people set, by name.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("ci/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %v in ci: %v", files, err)
	}
	out := map[string]string{}
	for _, f := range files {
		out[strings.TrimSuffix(filepath.Base(f), ".yaml")] = f
	}
	return out
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

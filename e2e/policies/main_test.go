// Package policies_test proves on a real API server what the schemas of Weir's policies hold: each
// rule of its own by an object that breaks exactly that one, the defaults, and what kubectl get
// shows. It knows the policies as their users do, by the YAML of their CustomResourceDefinitions.
package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/e2e/load"
	"github.com/weir-dev/weir/e2e/plane"
)

const crdDir = "../../policies/crds"

// server is the API server that the tests share; each of them writes objects of its own, or with
// dryRun.
var server struct {
	config *rest.Config
	client dynamic.Interface
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/policies:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	p, err := plane.Start(context.Background(), plane.Options{Out: os.Stderr})
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.Stop() }() // a temporary directory that stays is no failure
	server.config = p.Config
	if server.client, err = dynamic.NewForConfig(p.Config); err != nil {
		return 0, err
	}
	if err := load.CreateCRDs(context.Background(), p.Config, crdDir); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func readCRDs() ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(crdDir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("find CRDs in %s: %w", crdDir, err)
	}
	if len(files) != 6 {
		return nil, fmt.Errorf("find six CRDs in %s: found %v", crdDir, files)
	}
	var out []*unstructured.Unstructured
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		crd, err := fromYAML(string(data))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f, err)
		}
		out = append(out, crd)
	}
	return out, nil
}

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: plural}
}

func fromYAML(text string) (*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, json.Unmarshal(data, &u.Object)
}

func mustYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u, err := fromYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/e2e/plane"
)

const crdDir = "../../policies/crds"

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

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
	crds, err := readCRDs()
	if err != nil {
		return 0, err
	}
	for _, crd := range crds {
		if err := install(crd); err != nil {
			return 0, err
		}
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

// install creates a CRD and returns once its objects can be listed.
func install(crd *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := server.client.Resource(crdResource).Create(ctx, crd, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		return fmt.Errorf("install %s: %w", crd.GetName(), err)
	}
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := server.client.Resource(resource(plural)).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s are served: %w", plural, err)
	}
	return nil
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

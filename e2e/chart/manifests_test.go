package chart_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

func apply(t *testing.T, mapper meta.RESTMapper, o *unstructured.Unstructured, dryRun ...string) error {
	t.Helper()
	gvk := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	data, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	var at dynamic.ResourceInterface = shared.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.GetNamespace() == "" {
			return errors.New("it has no namespace: kubectl apply of helm template would put it anywhere")
		}
		at = shared.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace())
	} else if o.GetNamespace() != "" {
		return errors.New("it has a namespace and its kind has none")
	}
	_, err = at.Patch(t.Context(), o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: "e2e-dry-run", Force: new(true), DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

func manifests(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

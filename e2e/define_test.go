package e2e

import (
	"context"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typedapiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/e2e/load"
)

func (w *fixture) crds() typedapiextensionsv1.CustomResourceDefinitionInterface {
	w.Helper()
	client, err := apiextensions.NewForConfig(w.plane.Config)
	if err != nil {
		w.Fatal(err)
	}
	return client.ApiextensionsV1().CustomResourceDefinitions()
}

// definition is a kind of the fixture's own: its group is the namespace, so that no
// two tests share one. The first version is the stored one.
func (w *fixture) definition(kind string, scope apiextensionsv1.ResourceScope, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	of := load.Kind{Resource: strings.ToLower(kind) + "s"}
	of.Group, of.Kind = w.namespace+".example.com", kind
	return load.Definition(of, scope, versions...)
}

// define creates a kind, and returns when the API server says that it serves it.
// Lines of objects name it by its singular.
func (w *fixture) define(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	if _, err := w.crds().Create(w.Context(), crd, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.kinds[crd.Spec.Names.Singular] = kind{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind},
		resource:         crd.Spec.Names.Plural,
		cluster:          crd.Spec.Scope == apiextensionsv1.ClusterScoped,
	}
	w.until(crd.Name+" is established", func(ctx context.Context) (bool, error) {
		found, err := w.crds().Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(found.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}), nil
	})
}

// undefine deletes a kind, and returns when it is gone with all its objects.
func (w *fixture) undefine(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	w.beginUndefine(crd)
	w.awaitUndefined(crd)
}

// beginUndefine deletes a kind. An object of it with a finalizer holds the definition, and all
// watches go on meanwhile.
func (w *fixture) beginUndefine(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	if err := w.crds().Delete(w.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// awaitUndefined waits until a kind that was deleted is gone with all its objects.
func (w *fixture) awaitUndefined(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	w.until(crd.Name+" is gone", func(ctx context.Context) (bool, error) {
		list, err := w.crds().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crd.Name})
		if err != nil {
			return false, err
		}
		return len(list.Items) == 0, nil
	})
	k := w.kinds[crd.Spec.Names.Singular]
	delete(w.kinds, crd.Spec.Names.Singular)
	for name, o := range w.made {
		if o.gvr() == k.gvr() {
			delete(w.made, name)
		}
	}
}

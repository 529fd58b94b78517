//go:build full

package chart_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/restmapper"
)

// unserved are the groups whose CustomResourceDefinitions belong to others and are not in this
// cluster. charts checks what is of monitoring.coreos.com against the operator's types; the Issuer
// has one field.
var unserved = []string{"cert-manager.io", "monitoring.coreos.com"}

// A manifest of the chart is one that the API server takes as it is, with nothing unknown or twice
// in it: stronger than a comparison with published schemas, since admission, validation and
// defaults of this Kubernetes have their say.
func TestAPIServerAcceptsEveryManifest(t *testing.T) {
	groups, err := restmapper.GetAPIGroupResources(shared.client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	// A pod is refused while its account is not there, and a dry run makes none.
	accounts := shared.client.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "weir-test"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := accounts.Delete(t.Context(), "weir-test", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	var kinds, left []string
	for _, values := range valueSets(t) {
		for _, o := range manifests(t, helm(t, "template", "weir", "weir", "--kube-version", "1.36.3", "--values", values)) {
			gvk := o.GroupVersionKind()
			if slices.Contains(unserved, gvk.Group) {
				left = append(left, gvk.Group)
				continue
			}
			if err := apply(t, mapper, o, metav1.DryRunAll); err != nil {
				t.Errorf("%s: %s %s: %v", values, o.GetKind(), o.GetName(), err)
			}
			kinds = append(kinds, gvk.Kind)
		}
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); len(kinds) < 15 {
		t.Errorf("the API server saw %v only", kinds)
	}
	slices.Sort(left)
	if left = slices.Compact(left); !slices.Equal(left, unserved) {
		t.Errorf("left out manifests of %v, want some of each of %v", left, unserved)
	}
}

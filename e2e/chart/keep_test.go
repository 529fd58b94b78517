//go:build full

package chart_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The definitions of policies leave the manifest in shadow mode. Policies stay all the same where
// nothing has told Helm to keep them.
func TestPoliciesOutliveAnUpgradeToShadowMode(t *testing.T) {
	ctx := t.Context()
	helm(t, "install", "weir", "weir", "--wait", "--timeout", "2m", "--set", "crds.keep=false")
	definitions := shared.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition, err := definitions.Get(ctx, "deletionpolicies.weir.dev", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if definition.GetAnnotations()["helm.sh/resource-policy"] != "" {
		t.Fatalf("Helm keeps the definition: %v", definition.GetAnnotations())
	}
	policies := shared.dynamic.Resource(schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletionpolicies"})
	until(t, "a policy can be written", func(ctx context.Context) (bool, error) {
		_, err := policies.Create(ctx, policy("outlives"), metav1.CreateOptions{})
		return err == nil, ignoring(err, apierrors.IsNotFound)
	})
	// Twice: the first upgrade has told Helm to keep them.
	for range 2 {
		helm(t, "upgrade", "weir", "weir", "--reset-values", "--wait", "--timeout", "2m", "--set", "mode=shadow")
		if _, err := policies.Get(ctx, "outlives", metav1.GetOptions{}); err != nil {
			t.Errorf("helm upgrade to shadow mode took the policy along: %v", err)
		}
	}
	helm(t, "uninstall", "weir", "--wait", "--timeout", "2m")
	if err := policies.Delete(ctx, "outlives", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var deletionPolicies = schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletionpolicies"}

// policy makes a policy and shows it.
func (c *cluster) policy(ctx context.Context, name, spec string) error {
	fmt.Printf("\n$ kubectl apply -f - <<policy\nkind: DeletionPolicy\nmetadata: {name: %s}\nspec:%s\npolicy\n", name, strings.TrimRight(spec, "\n "))
	_, err := c.create(ctx, deletionPolicies, fmt.Sprintf("apiVersion: weir.dev/v1beta1\nkind: DeletionPolicy\nmetadata: {name: %s}\nspec:%s", name, spec))
	return err
}

// defaultForeground: a delete as kubectl sends it, which asks for Background, is carried out
// foreground.
func defaultForeground(ctx context.Context, c *cluster) error {
	if err := c.policy(ctx, "workloads", `
  match: {resources: [{apiGroups: [apps], resources: [deployments]}]}
  propagation: {default: Foreground}
`); err != nil {
		return err
	}
	if err := until(ctx, "Deployments are stamped", func(ctx context.Context) (bool, error) {
		d, err := c.create(ctx, deployments, deployment("stamped"), metav1.DryRunAll)
		return err == nil && len(d.GetFinalizers()) > 0, err
	}); err != nil {
		return err
	}
	return deleteRoot(ctx, c, "front", background)
}

// protectedNamespace: what a refusal says.
func protectedNamespace(ctx context.Context, c *cluster) error {
	if err := c.policy(ctx, "namespaces-with-content", `
  match: {resources: [{apiGroups: [""], resources: [namespaces]}]}
  protection: {maxDependents: 0, confirmation: Required}
`); err != nil {
		return err
	}
	fmt.Printf("\n$ kubectl delete namespace %s\n", namespace)
	var refusal error
	if err := until(ctx, "the deletion is refused", func(ctx context.Context) (bool, error) {
		// dryRun: it must not succeed while the API server has not heard of the policy yet.
		refusal = c.in(namespaces).Delete(ctx, namespace, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return refusal != nil, nil
	}); err != nil {
		return err
	}
	fmt.Println(" ", strings.ReplaceAll(refusal.Error(), ". To let", ".\n  To let"))
	if !strings.Contains(refusal.Error(), "would also be deleted") {
		return errors.New("the refusal should say what would also be deleted")
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var deletionPolicies = schema.GroupVersionResource{Group: "weir.dev", Version: "v1beta1", Resource: "deletionpolicies"}

// installPolicies installs the kinds of policies as a user would: weir policy crds | kubectl apply
// -f -.
func (c *cluster) installPolicies(ctx context.Context, binary string) error {
	out, err := exec.CommandContext(ctx, binary, "policy", "crds").Output()
	if err != nil {
		return fmt.Errorf("weir policy crds: %w", err)
	}
	for _, manifest := range strings.Split(string(out), "\n---\n") {
		var any map[string]any
		if err := yaml.Unmarshal([]byte(manifest), &any); err != nil {
			return fmt.Errorf("read what weir policy crds says: %w", err)
		}
		if len(any) == 0 {
			continue
		}
		if _, err := c.create(ctx, crds, manifest); err != nil {
			return err
		}
	}
	return until(ctx, "policies are served", func(ctx context.Context) (bool, error) {
		_, err := c.in(deletionPolicies).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

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
		d, err := c.dryRun(ctx, "stamped")
		return err == nil && len(d) > 0, err
	}); err != nil {
		return err
	}
	set, pods3, err := deploy(ctx, c, "front")
	if err != nil {
		return err
	}
	alsoDeleted := []object{{replicaSets, set}}
	for _, p := range pods3 {
		alsoDeleted = append(alsoDeleted, object{pods, p})
	}
	return c.delete(ctx, deployments, "front", background, alsoDeleted...)
}

// dryRun has the API server say which finalizers a Deployment would get.
func (c *cluster) dryRun(ctx context.Context, name string) ([]string, error) {
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: demo}
spec: {replicas: 0, selector: {matchLabels: {app: %[1]s}}, template: %[2]s}`, name, pod(name, "Always"))), &obj); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	made, err := c.in(deployments).Create(ctx, asObject(obj), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, fmt.Errorf("try a Deployment: %w", err)
	}
	return made.GetFinalizers(), nil
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

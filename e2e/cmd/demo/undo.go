package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// broughtBack: what was deleted, and all that it owned, is there again, and its pods run.
func broughtBack(ctx context.Context, c *cluster) error {
	if err := c.policy(ctx, "undo", `
  match: {resources: [{apiGroups: [apps], resources: [deployments]}]}
  archive: {retentionSeconds: 604800}
`); err != nil {
		return err
	}
	if err := c.inForce(ctx, "undo"); err != nil {
		return err
	}
	set, podNames, err := deploy(ctx, c, "back")
	if err != nil {
		return err
	}
	owner, err := c.in(deployments).Get(ctx, "back", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if _, err := c.create(ctx, configMaps, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: demo
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: back, uid: %s}]`, owner.GetUID())); err != nil {
		return err
	}
	fmt.Println("  it also owns: configmap settings")
	alsoDeleted := []object{{replicaSets, set}, {configMaps, "settings"}}
	for _, p := range podNames {
		alsoDeleted = append(alsoDeleted, object{pods, p})
	}
	if err := c.delete(ctx, deployments, "back", background, alsoDeleted...); err != nil {
		return err
	}
	trees, err := c.weir(ctx, "deleted", "-n", namespace)
	if err != nil {
		return err
	}
	lines := strings.Split(trees, "\n")
	if len(lines) != 2 {
		return fmt.Errorf("kubectl weir deleted says %q, want one tree", trees)
	}
	tree := strings.Fields(lines[1])[0]
	if _, err := c.weir(ctx, "restore", tree, "--weir-namespace", metav1.NamespaceSystem); err != nil {
		return err
	}
	if err := c.running(ctx, "back", len(podNames)); err != nil {
		return err
	}
	owner, err = c.in(deployments).Get(ctx, "back", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if owned, err := c.owned(ctx, configMaps, owner); !slices.Equal(owned, []string{"settings"}) {
		return fmt.Errorf("the Deployment owns the configmaps %v, want settings: %w", owned, err)
	}
	fmt.Printf("  running again: %d pods\n", len(podNames))
	return nil
}

// inForce waits until the controller has taken a policy in.
func (c *cluster) inForce(ctx context.Context, name string) error {
	return until(ctx, "the policy is in force", func(ctx context.Context) (bool, error) {
		p, err := c.in(deletionPolicies).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, err := unstructured.NestedSlice(p.Object, "status", "conditions")
		return strings.Contains(fmt.Sprint(conditions), "status:True type:Valid"), err
	})
}

// weir runs the plugin of kubectl, and shows what it says.
func (c *cluster) weir(ctx context.Context, args ...string) (string, error) {
	fmt.Printf("\n$ kubectl weir %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, c.plugin, append(args, "--kubeconfig", c.kubeconfig)...)
	cmd.Stderr = os.Stdout
	out, err := cmd.Output()
	said := strings.TrimSpace(string(out))
	fmt.Println("  " + strings.ReplaceAll(said, "\n", "\n  "))
	if err != nil {
		return "", fmt.Errorf("kubectl weir %s: %w", args[0], err)
	}
	return said, nil
}

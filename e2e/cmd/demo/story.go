package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// tell plays the whole story. Every act checks what it claims.
func tell(ctx context.Context, c *cluster) error {
	if _, err := c.create(ctx, namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: demo}}"); err != nil {
		return err
	}
	acts := []struct {
		title string
		play  func(context.Context, *cluster) error
	}{
		{"A Deployment, its ReplicaSet and three pods, deleted in the background: each level goes when the one above it is gone", deploymentBackground},
		{"The same, foreground: the Deployment stays until its ReplicaSet is gone, and that until its pods are", deploymentForeground},
		{"The same, orphan: the Deployment goes, the ReplicaSet and the pods stay and run on", deploymentOrphan},
		{"A policy: Deployments are deleted foreground, whatever kubectl asks for", defaultForeground},
		{"Another: a namespace is not deleted while there is something in it", protectedNamespace},
		{"Undo: a Deployment is deleted with what it owns, and brought back", broughtBack},
		{"The brake: a definition goes with 600 instances; what they own is held until a person decides", uninstalled},
	}
	for i, act := range acts {
		fmt.Printf("\n── %d. %s\n", i+1, act.title)
		if err := act.play(ctx, c); err != nil {
			return fmt.Errorf("act %d: %w", i+1, err)
		}
	}
	return nil
}

// deployment is one of three pods.
func deployment(name string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: demo}
spec:
  replicas: 3
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: app}]}`, name)
}

// deploy makes a Deployment with running pods, and returns the names that hang on it.
func deploy(ctx context.Context, c *cluster, name string) (replicaSet string, podNames []string, err error) {
	d, err := c.create(ctx, deployments, deployment(name))
	if err != nil {
		return "", nil, err
	}
	if err := c.running(ctx, name, 3); err != nil {
		return "", nil, err
	}
	sets, err := c.owned(ctx, replicaSets, d)
	if err != nil || len(sets) != 1 {
		return "", nil, fmt.Errorf("ReplicaSets of %s: %v, %w", name, sets, err)
	}
	rs, err := c.in(replicaSets).Get(ctx, sets[0], metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	podNames, err = c.owned(ctx, pods, rs)
	fmt.Printf("  running: deployment %s ─ replicaset %s ─ pods %v\n", name, sets[0], podNames)
	return sets[0], podNames, err
}

func deploymentBackground(ctx context.Context, c *cluster) error {
	return deleteRoot(ctx, c, "web", background)
}
func deploymentForeground(ctx context.Context, c *cluster) error {
	return deleteRoot(ctx, c, "shop", foreground)
}

func deleteRoot(ctx context.Context, c *cluster, name string, policy metav1.DeletionPropagation) error {
	rs, podNames, err := deploy(ctx, c, name)
	if err != nil {
		return err
	}
	alsoDeleted := []object{{replicaSets, rs}}
	for _, p := range podNames {
		alsoDeleted = append(alsoDeleted, object{pods, p})
	}
	return c.delete(ctx, deployments, name, policy, alsoDeleted...)
}

func deploymentOrphan(ctx context.Context, c *cluster) error {
	rs, podNames, err := deploy(ctx, c, "keep")
	if err != nil {
		return err
	}
	if err := c.delete(ctx, deployments, "keep", orphan); err != nil {
		return err
	}
	set, err := c.in(replicaSets).Get(ctx, rs, metav1.GetOptions{})
	if err != nil || len(set.GetOwnerReferences()) != 0 {
		return fmt.Errorf("replicaset %s should be there without an owner: %w", rs, err)
	}
	if err := c.running(ctx, "keep", len(podNames)); err != nil {
		return err
	}
	fmt.Printf("  still there: replicaset %s without an owner, its pods running\n", rs)
	return nil
}

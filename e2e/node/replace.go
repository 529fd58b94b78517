package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/e2e/plane"
)

// cloud is who deletes the Node of a machine that a cloud does not have any more. It is none of the
// administrators, whose deletes policies judge.
const cloud = "system:cloud-controller-manager"

// Lose takes the machine away, with everything that runs on it: nothing is told to stop, and what
// kubelet kept is gone. Then its Node is deleted, as a cloud does. The pods are left to the control
// plane, which finds out that their node is gone.
//
// What stays is what the next machine would have to be given, as there is no registry and no other
// machine: containerd with its images; and kube-proxy, by whose rules the API server calls
// Services, too.
func (n *Node) Lose(ctx context.Context) error {
	if n.kubelet == nil {
		return errors.New("lose the node: there is none")
	}
	lost := n.kubelet
	n.kubelet = nil
	n.children = slices.DeleteFunc(n.children, func(c *plane.Child) bool { return c == lost })
	lost.Kill()
	if err := n.removePods(ctx); err != nil {
		return fmt.Errorf("lose the node: %w", err)
	}
	if err := removeTree(kubeletDir); err != nil {
		return fmt.Errorf("lose the node: %w", err)
	}
	config, _, err := n.UserConfig(cloud, "system:masters") // there is no role of Kubernetes' own for it
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := client.CoreV1().Nodes().Delete(ctx, Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("lose the node: %w", err)
	}
	return nil
}

// Replace starts an empty machine in place of one that was lost, and returns when its node is
// ready. It has the name of the old one: pods of that which are still there would run on it. Where
// none was lost there is nothing to do.
func (n *Node) Replace(ctx context.Context) error {
	if n.kubelet != nil {
		return nil
	}
	if err := n.startKubelet(ctx); err != nil {
		return fmt.Errorf("replace the node: %w", err)
	}
	return n.awaitNode(ctx)
}

// Collect has kube-controller-manager run with its garbage collector and its namespace controller,
// or without them: it is started again.
func (n *Node) Collect(ctx context.Context, on bool) error {
	controllers := plane.All
	if !on {
		controllers = plane.WithoutCollectors
	}
	if n.controllers == controllers {
		return nil
	}
	if err := n.StopController(); err != nil {
		return fmt.Errorf("stop kube-controller-manager: %w", err)
	}
	if err := n.StartController(ctx, controllers); err != nil {
		return err
	}
	n.controllers = controllers
	return nil
}

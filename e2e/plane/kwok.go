package plane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// NodeName is the node that Options.Kwok adds.
const NodeName = "weir-node-0"

// kwokStages are what a node and a pod go through, from kwok's own module.
var kwokStages = []string{
	"node/fast/node-initialize.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

func (p *Plane) startKwok(ctx context.Context, path string) error {
	source, err := kwokSource(ctx)
	if err != nil {
		return fmt.Errorf("find kwok's stages: %w", err)
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + p.Kubeconfig,
		"--manage-all-nodes=true",
		"--node-ip=127.0.0.1",
		"--server-address=" + loopback(port),
		"--node-lease-duration-seconds=40", // kubelet's: the node is not ready 50 s after its last sign of life
	}
	for _, stage := range kwokStages {
		args = append(args, "--config="+filepath.Join(source, "kustomize", "stage", filepath.FromSlash(stage)))
	}
	c := Command(string(Kwok), path, p.log(Kwok), args...)
	if err := p.start(ctx, c); err != nil {
		return err
	}
	if err := p.await(ctx, c, answers(localClient(), "http://"+loopback(port)+"/healthz")); err != nil {
		return err
	}
	return p.addNode(ctx, c)
}

// kwokSource is where the go command keeps kwok's module. The binary may come
// from the cache of an earlier day, and the module be gone since.
func kwokSource(ctx context.Context) (string, error) {
	root, err := moduleDir(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "kwok")
	if _, err := goOutput(ctx, dir, "mod", "download", "sigs.k8s.io/kwok"); err != nil {
		return "", err
	}
	return goOutput(ctx, dir, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
}

// addNode makes the node and waits until kwok has made it ready.
func (p *Plane) addNode(ctx context.Context, kwok *Child) error {
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return fmt.Errorf("add node %s: %w", NodeName, err)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("10000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        NodeName,
			Labels:      map[string]string{"type": "kwok", "kubernetes.io/hostname": NodeName, "kubernetes.io/os": "linux"},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("add node %s: %w", NodeName, err)
	}
	err = p.await(ctx, kwok, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the node is not ready")
	})
	if err != nil {
		return fmt.Errorf("add node %s: %w", NodeName, err)
	}
	// Admission taints each new node as not ready, and only a controller
	// that may not be running takes the taint away.
	_, err = client.CoreV1().Nodes().Patch(ctx, NodeName, types.MergePatchType,
		[]byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("untaint node %s: %w", NodeName, err)
	}
	return nil
}

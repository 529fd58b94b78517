package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/e2e/plane"
)

const (
	// Name is that of the node.
	Name = "weir-node"
	// dir is the same for all nodes, so that one finds what another left behind. Only root writes
	// there.
	dir = "/var/lib/weir-e2e"

	pollEvery   = 100 * time.Millisecond
	readyWithin = 2 * time.Minute
)

// Options say what runs.
type Options struct {
	// Plane is the control plane; its Address is the node's to choose.
	Plane plane.Options
	// Pause is an archive with the image named PauseImage, which holds the namespaces of each pod.
	Pause string
	// Images are archives of all other images; there is no registry.
	Images []string
	// Logs is where the logs of all parts are put at the end; empty: nowhere.
	Logs string
}

// A Node is a cluster of one node.
type Node struct {
	*plane.Plane
	out      io.Writer
	logs     string
	bins     plane.Binaries
	children []*plane.Child // those that are not to end by themselves
	kubelet  *plane.Child   // nil while the machine is lost
	undo     []func() error // what Stop does, last first
	// controllers are those that kube-controller-manager runs.
	controllers plane.Controllers
}

// Start builds what is missing and returns when the node is ready. Stop is to be called in every
// case but an error.
func Start(ctx context.Context, o Options) (*Node, error) {
	if lacks := Missing(); lacks != "" {
		return nil, fmt.Errorf("start a node: %s", lacks)
	}
	n := &Node{out: o.Plane.Out, logs: o.Logs}
	if n.out == nil {
		n.out = io.Discard
	}
	if err := n.start(ctx, o); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, o Options) error {
	var err error
	if n.bins, err = plane.Build(ctx, n.out, plane.Kubelet, plane.Proxy); err != nil {
		return err
	}
	if err := n.takeMachine(ctx); err != nil {
		return err
	}
	if err := n.addBridge(ctx); err != nil {
		return err
	}
	o.Plane.Address, o.Plane.Dir = gateway, filepath.Join(dir, "plane")
	// Not tied to ctx: the control plane goes after the node.
	if n.Plane, err = plane.Start(context.WithoutCancel(ctx), o.Plane); err != nil {
		return err
	}
	n.controllers = o.Plane.Controllers
	n.later(n.Plane.Stop)
	if err := n.startRuntime(ctx); err != nil {
		return err
	}
	for _, image := range append([]string{o.Pause}, o.Images...) {
		if err := n.Import(ctx, image); err != nil {
			return err
		}
	}
	if err := n.startProxy(ctx); err != nil {
		return err
	}
	if err := n.startKubelet(ctx); err != nil {
		return err
	}
	return n.awaitNode(ctx)
}

// takeMachine makes this process the only one that runs a node here, and cleans up after one that
// was killed.
func (n *Node) takeMachine(ctx context.Context) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the node: %w", err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the machine: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("lock the machine: %w: is there a node in another terminal? (%s)", err, lock.Name())
	}
	n.later(lock.Close)
	if err := errors.Join(n.purge(ctx), n.sweep(ctx)); err != nil {
		return fmt.Errorf("clean up after an earlier node: %w", err)
	}
	if err := othersProxy(ctx); err != nil {
		return err
	}
	n.later(func() error {
		n.keepLogs()
		return n.sweep(context.WithoutCancel(ctx))
	})
	return os.MkdirAll(dir, 0o700)
}

// sweep removes what is no process: the network, mounts, and files.
func (n *Node) sweep(ctx context.Context) error {
	return errors.Join(n.cleanProxy(ctx), removeBridge(ctx), removeTraces(), removeTree(dir))
}

func (n *Node) later(f func() error) { n.undo = append(n.undo, f) }

// Stop ends everything that Start has begun, in the reverse order, whatever goes wrong on the way.
func (n *Node) Stop() error {
	var errs []error
	for len(n.undo) > 0 {
		last := len(n.undo) - 1
		f := n.undo[last]
		n.undo = n.undo[:last]
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// run starts a program that ends with the node.
func (n *Node) run(ctx context.Context, name, path string, args ...string) (*plane.Child, error) {
	c := plane.Command(name, path, filepath.Join(dir, name+".log"), args...)
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	n.children = append(n.children, c)
	n.later(func() error { return c.Stop(plane.DefaultGrace) }) // nothing, of one that has ended
	return c, nil
}

func (n *Node) awaitNode(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.Config)
	if err != nil {
		return err
	}
	return n.await(ctx, "the node is ready", func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return errors.New(c.Message)
			}
		}
		if len(node.Spec.Taints) > 0 || len(node.Status.Conditions) == 0 {
			return fmt.Errorf("it has the taints %v and %d conditions", node.Spec.Taints, len(node.Status.Conditions))
		}
		return nil
	})
}

// await asks until there is no objection, or one of the node's programs has ended.
func (n *Node) await(ctx context.Context, what string, holds func(context.Context) error) error {
	var objection error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, readyWithin, true, func(ctx context.Context) (bool, error) {
		for _, c := range n.children {
			select {
			case <-c.Exited():
				return false, fmt.Errorf("%s ended: %w; its log ends with\n%s", c.Name, c.Wait(), c.Tail(20))
			default:
			}
		}
		objection = holds(ctx)
		return objection == nil, nil
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("wait until %s: %w: %w", what, err, objection)
	for _, c := range n.children {
		err = fmt.Errorf("%w\n--- %s\n%s", err, c.Name, c.Tail(10))
	}
	return err
}

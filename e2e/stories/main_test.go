//go:build stories

package stories

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-dev/weir/e2e/helm"
	"github.com/weir-dev/weir/e2e/node"
	"github.com/weir-dev/weir/e2e/plane"
)

const (
	charts        = "../../charts" // a module of its own, which has Helm
	chart         = charts + "/weir"
	weirNamespace = "weir-system"
	finalizer     = "weir.dev/propagation"
)

// cluster is where the stories are told.
var cluster struct {
	kubeconfig    string
	config        *rest.Config
	client        kubernetes.Interface
	dynamic       dynamic.Interface
	helm, kubectl string // the programs
	worker        string // the image of package workload/worker
	dir           string // for files
	// machine is that of the only node, where it can be replaced: nil in clusters of others.
	machine *node.Remote
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/stories:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if cluster.kubeconfig = os.Getenv("KUBECONFIG"); cluster.kubeconfig == "" {
		return 0, errors.New("KUBECONFIG: name the cluster to install Weir in; make e2e-node makes one of this machine")
	}
	if cluster.config, err = clientcmd.BuildConfigFromFlags("", cluster.kubeconfig); err != nil {
		return 0, err
	}
	cluster.config.QPS = -1 // what is refused is to be refused by the API server
	if cluster.client, err = kubernetes.NewForConfig(cluster.config); err != nil {
		return 0, err
	}
	if cluster.dynamic, err = dynamic.NewForConfig(cluster.config); err != nil {
		return 0, err
	}
	if err := free(ctx); err != nil {
		return 0, err
	}
	if cluster.worker = os.Getenv("WORKER_IMAGE"); cluster.worker == "" {
		cluster.worker = "weir.test/worker:1"
	}
	if socket := os.Getenv(node.SocketVariable); socket != "" {
		cluster.machine = node.NewRemote(socket)
	}
	if cluster.dir, err = os.MkdirTemp("", "weir-stories-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cluster.dir)) }()
	if cluster.helm, err = helm.Build(ctx, charts); err != nil {
		return 0, err
	}
	bins, err := plane.Build(ctx, os.Stderr, plane.Kubectl)
	if err != nil {
		return 0, err
	}
	cluster.kubectl = bins[plane.Kubectl]
	defer func() {
		for _, f := range ends {
			f()
		}
	}()
	return m.Run(), nil
}

// ends are what is done after the last story.
var ends []func()

func atEnd(f func()) { ends = append(ends, f) }

// free refuses a cluster that another Weir works in: the stories would uninstall it.
func free(ctx context.Context) error {
	_, err := cluster.client.CoreV1().Namespaces().Get(ctx, weirNamespace, metav1.GetOptions{})
	if err == nil {
		return fmt.Errorf("the cluster of %s has a namespace %s: the stories need one without Weir", cluster.kubeconfig, weirNamespace)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("look into the cluster of %s: %w", cluster.kubeconfig, err)
}

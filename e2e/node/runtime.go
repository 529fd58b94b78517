package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// PauseImage is what containerd starts first in each pod. The name is of no registry: nothing can
// be pulled here.
const PauseImage = "weir.test/pause:1"

var (
	containerdDir    = filepath.Join(dir, "containerd")
	containerdSocket = filepath.Join(containerdDir, "sock")
)

// containerdConfig keeps all of containerd below the node's directory. Two deviations from what is
// usual: restrict_oom_score_adj, because a machine that may not lower it (no CAP_SYS_RESOURCE)
// could start nothing, and network namespaces below its own state, because those in /var/run/netns
// are everybody's.
const containerdConfig = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
oom_score = 0
[grpc]
  address = "%[2]s"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[3]s"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "%[4]s"
  conf_dir = "%[5]s"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
`

func (n *Node) startRuntime(ctx context.Context) error {
	if err := n.writeNetwork(); err != nil {
		return err
	}
	if _, err := n.startContainerd(ctx); err != nil {
		return err
	}
	n.later(func() error { return n.removePods(context.WithoutCancel(ctx)) })
	return nil
}

func (n *Node) startContainerd(ctx context.Context) (*plane.Child, error) {
	if err := os.MkdirAll(containerdDir, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(containerdDir, "config.toml")
	text := fmt.Sprintf(containerdConfig, containerdDir, containerdSocket, PauseImage, pluginDir(), networkDir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	path, err := exec.LookPath("containerd")
	if err != nil {
		return nil, err
	}
	c, err := n.run(ctx, "containerd", path, "--config", config)
	if err != nil {
		return nil, err
	}
	return c, n.await(ctx, "containerd answers", func(ctx context.Context) error {
		return withRuntime(func(r runtimeapi.RuntimeServiceClient) error {
			_, err := r.Version(ctx, &runtimeapi.VersionRequest{})
			return err
		})
	})
}

// Import loads the images of an archive.
func (n *Node) Import(ctx context.Context, archive string) error {
	// All that is in the archive, so that nothing is looked for in a registry.
	cmd := exec.CommandContext(ctx, "ctr", "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", archive)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("load %s: %w: %s", archive, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// purge ends the containers of a node that was killed: containerd finds them again by its state.
func (n *Node) purge(ctx context.Context) error {
	if _, err := os.Stat(containerdDir); err != nil {
		return nil
	}
	c, err := n.startContainerd(ctx)
	if err != nil {
		return err
	}
	defer func() { n.children = nil }()
	n.undo = n.undo[:len(n.undo)-1] // stopped here
	return errors.Join(n.removePods(ctx), c.Stop(plane.DefaultGrace))
}

// removePods ends all containers at once, without grace, and takes their network down.
func (n *Node) removePods(ctx context.Context) error {
	return withRuntime(func(r runtimeapi.RuntimeServiceClient) error {
		list, err := r.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		if err != nil {
			return fmt.Errorf("list the pods that are left: %w", err)
		}
		var (
			wg   sync.WaitGroup
			errs = make([]error, len(list.Items))
		)
		for i, pod := range list.Items {
			wg.Go(func() {
				_, err := r.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod.Id})
				if err == nil {
					_, err = r.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod.Id})
				}
				if err != nil {
					errs[i] = fmt.Errorf("remove pod %s: %w", pod.Metadata.GetName(), err)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

func withRuntime(f func(runtimeapi.RuntimeServiceClient) error) (err error) {
	conn, err := grpc.NewClient("unix://"+containerdSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return f(runtimeapi.NewRuntimeServiceClient(conn))
}

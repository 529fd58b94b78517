package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/weir-dev/weir/e2e/plane"
)

// proxyFile is there from before kube-proxy writes its first rule until after its last is gone.
var proxyFile = filepath.Join(dir, "kube-proxy.yaml")

// othersProxy refuses a machine on which another kube-proxy works: the two would remove one
// another's rules.
func othersProxy(ctx context.Context) error {
	if exec.CommandContext(ctx, "iptables", "-t", "nat", "-S", "KUBE-SERVICES").Run() == nil {
		return errors.New("start a node: this machine has rules of a kube-proxy (iptables -t nat -S KUBE-SERVICES): is it the node of a cluster?")
	}
	return nil
}

// cleanProxy removes all rules and chains of kube-proxy.
func (n *Node) cleanProxy(ctx context.Context) error {
	if _, err := os.Stat(proxyFile); err != nil {
		return nil
	}
	if out, err := exec.CommandContext(ctx, n.bins[plane.Proxy], "--cleanup").CombinedOutput(); err != nil {
		return fmt.Errorf("remove the rules of kube-proxy: %w\n%s", err, out)
	}
	removeFirewall(ctx)
	return nil
}

// removeFirewall removes the chain that kube-proxy --cleanup leaves. It stays where it is used by
// another's rule.
func removeFirewall(ctx context.Context) {
	for _, iptables := range []string{"iptables", "ip6tables"} {
		for _, args := range [][]string{
			{"-D", "INPUT", "-j", "KUBE-FIREWALL"}, {"-D", "OUTPUT", "-j", "KUBE-FIREWALL"},
			{"-F", "KUBE-FIREWALL"}, {"-X", "KUBE-FIREWALL"},
		} {
			_ = exec.CommandContext(ctx, iptables, append([]string{"-w"}, args...)...).Run() // what is not there need not go
		}
	}
}

// removeTraces removes what programs put where they cannot be told to put it elsewhere. Directories
// go when they are empty, so nothing goes that is another's.
func removeTraces() error {
	links, err := filepath.Glob("/var/log/containers/*.log") // kubelet's, for those who collect logs
	for _, l := range links {
		if to, readErr := os.Readlink(l); readErr == nil && strings.HasPrefix(to, dir+"/") {
			err = errors.Join(err, os.Remove(l))
		}
	}
	results, globErr := filepath.Glob(filepath.Join(cniResults, network+"-*"))
	err = errors.Join(err, globErr)
	for _, f := range results {
		err = errors.Join(err, os.Remove(f))
	}
	empty := []string{"/var/log/containers", cniResults, filepath.Dir(cniResults)}
	for _, pattern := range []string{"/sys/fs/cgroup/k8s.io", "/sys/fs/cgroup/*/k8s.io"} { // containerd's parent of all pods
		groups, globErr := filepath.Glob(pattern)
		err = errors.Join(err, globErr)
		empty = append(empty, groups...)
	}
	for _, d := range empty {
		_ = syscall.Rmdir(d)
	}
	return err
}

// keepLogs copies the logs of all parts out of the directory before it goes. Without them there is
// still what the tests have said, so nothing that goes wrong here matters.
func (n *Node) keepLogs() {
	if n.logs == "" || os.MkdirAll(n.logs, 0o755) != nil {
		return
	}
	for _, pattern := range []string{"*.log", "plane/*.log"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil {
				_ = os.WriteFile(filepath.Join(n.logs, filepath.Base(f)), data, 0o644)
			}
		}
	}
}

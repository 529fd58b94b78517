package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	bridge  = "weir-e2e0"
	gateway = "10.97.0.1"
	podCIDR = "10.97.0.0/24"
	network = "weir-e2e"

	forwarding = "/proc/sys/net/ipv4/ip_forward"
	// cniResults is where the library that containerd uses keeps what plugins said; it cannot be
	// told otherwise.
	cniResults = "/var/lib/cni/results"
)

var networkDir = filepath.Join(dir, "cni")

// cniConfig connects pods with the bridge. No masquerading and no ports of the host: so no rules of
// iptables.
const cniConfig = `{
  "cniVersion": "0.4.0",
  "name": %q,
  "plugins": [{
    "type": "bridge",
    "bridge": %q,
    "isDefaultGateway": true,
    "hairpinMode": true,
    "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q, "gateway": %q}]]}
  }]
}
`

// addBridge makes the bridge before there are pods, because the API server listens on it.
func (n *Node) addBridge(ctx context.Context) error {
	if err := freeAddress(); err != nil {
		return err
	}
	was, err := os.ReadFile(forwarding)
	if err != nil {
		return fmt.Errorf("read whether this machine forwards: %w", err)
	}
	for _, args := range [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", gateway + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	} {
		if err := ip(ctx, args...); err != nil {
			return err
		}
	}
	// The bridge's plugin switches it on.
	n.later(func() error { return os.WriteFile(forwarding, was, 0o644) })
	return nil
}

// freeAddress says whether the addresses are used on this machine for something else.
func freeAddress() error {
	_, ours, err := net.ParseCIDR(podCIDR)
	if err != nil {
		return err
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if other, ok := a.(*net.IPNet); ok && (ours.Contains(other.IP) || other.Contains(ours.IP)) {
			return fmt.Errorf("make the network of pods: this machine uses %s already, as %s", podCIDR, other)
		}
	}
	return nil
}

func removeBridge(ctx context.Context) error {
	if _, err := net.InterfaceByName(bridge); err == nil {
		if err := ip(ctx, "link", "del", bridge); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) writeNetwork() error {
	if err := os.MkdirAll(networkDir, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf(cniConfig, network, bridge, filepath.Join(dir, "ipam"), podCIDR, gateway)
	return os.WriteFile(filepath.Join(networkDir, "10-weir.conflist"), []byte(text), 0o600)
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

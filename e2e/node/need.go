package node

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Packages are Debian's names for what has to be installed.
var Packages = []string{"containerd", "runc", "containernetworking-plugins", "iptables", "conntrack", "iproute2"}

var programs = []string{"containerd", "ctr", "runc", "iptables", "conntrack", "ip"}

// pluginDirs are where distributions put the programs of CNI.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Missing says what this machine lacks to be a node; empty means nothing.
func Missing() string {
	if runtime.GOOS != "linux" {
		return "a node needs Linux, this is " + runtime.GOOS
	}
	if os.Geteuid() != 0 {
		return "a node needs root, for containers and their network"
	}
	var lacking []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			lacking = append(lacking, p)
		}
	}
	if pluginDir() == "" {
		lacking = append(lacking, "CNI plugins")
	}
	if len(lacking) > 0 {
		return fmt.Sprintf("not installed: %s (apt-get install --no-install-recommends %s)", strings.Join(lacking, ", "), strings.Join(Packages, " "))
	}
	return ""
}

func pluginDir() string {
	for _, dir := range pluginDirs {
		if _, err := os.Stat(dir + "/bridge"); err == nil {
			return dir
		}
	}
	return ""
}

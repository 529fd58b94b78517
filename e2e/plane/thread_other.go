//go:build !linux

package plane

import (
	"os/exec"
	"syscall"
)

// childAttributes has no death signal here: only Linux has one. A parent that
// is killed outright leaves its children behind on other systems.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func startOnKeptThread(cmd *exec.Cmd) error { return cmd.Start() }

package plane

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// childAttributes makes the kernel kill the child when its parent dies, for
// the ends that no deferred call sees: a panic, a test timeout, SIGKILL.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startOnKeptThread starts cmd from a thread that lives as long as the
// process. The kernel ties the death signal to the parent's thread, and the Go
// runtime ends idle threads: a child started from any other goroutine could be
// killed while its parent is well.
func startOnKeptThread(cmd *exec.Cmd) error {
	threadOnce.Do(func() {
		threadWork = make(chan func())
		go func() {
			runtime.LockOSThread()
			for f := range threadWork {
				f()
			}
		}()
	})
	result := make(chan error)
	threadWork <- func() { result <- cmd.Start() }
	return <-result
}

var (
	threadOnce sync.Once
	threadWork chan func()
)

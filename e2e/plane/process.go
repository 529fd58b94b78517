package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Child is a program that this process runs and takes down again. It is a
// process group of its own, so that a Ctrl-C on the terminal reaches only the
// parent, which then stops its children in the right order.
type Child struct {
	Name string
	Path string
	Args []string
	Env  []string // added to the parent's
	// LogPath receives standard output and standard error. A second Start
	// appends to it.
	LogPath string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed once the process has been waited for
	err    error         // why it ended, set before exited is closed
}

// Command describes a child that has not been started yet.
func Command(name, path, logPath string, args ...string) *Child {
	return &Child{Name: name, Path: path, Args: args, LogPath: logPath}
}

// Start runs the program. When ctx ends the child is stopped.
func (c *Child) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil && !closed(c.exited) {
		return fmt.Errorf("start %s: it is running", c.Name)
	}
	log, err := os.OpenFile(c.LogPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = childAttributes()
	if err := startOnKeptThread(cmd); err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	exited := make(chan struct{})
	c.cmd, c.exited, c.err = cmd, exited, nil
	unhook := context.AfterFunc(ctx, func() { _ = c.Stop(DefaultGrace) })
	go func() {
		err := cmd.Wait()
		unhook()
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(exited)
	}()
	return nil
}

// DefaultGrace is how long a child may take to leave when it is asked to.
const DefaultGrace = 10 * time.Second

// Stop asks the child to leave, kills its process group after grace, and
// returns when it is gone. Only a child that had to be killed is an error.
func (c *Child) Stop(grace time.Duration) error {
	c.mu.Lock()
	cmd, exited := c.cmd, c.exited
	c.mu.Unlock()
	if cmd == nil || closed(exited) {
		return nil
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-exited:
		return nil
	case <-timer.C:
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-exited
	return fmt.Errorf("stop %s: killed after %s", c.Name, grace)
}

// Kill ends the child at once, as a crash would, and returns when it is gone.
func (c *Child) Kill() {
	c.mu.Lock()
	cmd, exited := c.cmd, c.exited
	c.mu.Unlock()
	if cmd == nil || closed(exited) {
		return
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-exited
}

// Exited is closed when the child is gone; nil before Start.
func (c *Child) Exited() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exited
}

// Wait returns when the child is gone, and how it ended.
func (c *Child) Wait() error {
	if exited := c.Exited(); exited != nil {
		<-exited
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Pid is the child's process id, 0 before Start.
func (c *Child) Pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// Tail is the last n lines of the log.
func (c *Child) Tail(n int) string {
	f, err := os.Open(c.LogPath)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 64<<10 {
		_, _ = f.Seek(-64<<10, io.SeekEnd)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}

// died is the error for a child that ended when it should not have.
func (c *Child) died() error {
	err := c.Wait()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w; its log ends with\n%s", c.Name, err, c.Tail(20))
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

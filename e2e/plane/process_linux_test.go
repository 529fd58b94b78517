//go:build full

package plane_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/e2e/plane"
)

const (
	roleVar    = "WEIR_PLANE_TEST_ROLE"
	addressVar = "WEIR_PLANE_TEST_ADDRESS"
)

// TestMain lets the test binary be the processes that the tests need.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "parent":
		parent()
	case "child":
		child()
	default:
		os.Exit(m.Run())
	}
}

// child says hello and stays until it is killed.
func child() {
	conn, err := net.Dial("tcp", os.Getenv(addressVar))
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintln(conn, "hello")
	_, _ = io.Copy(io.Discard, conn)
}

// parent starts a child from a thread that ends right away, and stays.
func parent() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		c := plane.Command("child", os.Args[0], os.DevNull)
		c.Env = []string{roleVar + "=child"}
		if err := c.Start(context.Background()); err != nil {
			os.Exit(1)
		}
	}()
	<-ended
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestChildDiesWithItsParentAndNotWithAThread(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=parent", addressVar+"="+l.Addr().String())
	stdin, err := cmd.StdinPipe() // open: the parent stays
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hello := make([]byte, len("hello\n"))
	if _, err := io.ReadFull(conn, hello); err != nil {
		t.Fatalf("the child died with the thread that asked for it: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(hello); os.IsTimeout(err) {
		t.Error("the child outlived its parent")
	}
	_ = cmd.Wait()
}

func TestStopKillsWhatDoesNotLeave(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	c := plane.Command("stubborn", "sh", log, "-c", `trap "" TERM; echo ready; while :; do sleep 1; done`)
	var err error
	if c.Path, err = exec.LookPath("sh"); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A signal that comes before the trap would end it gently.
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) { return c.Tail(1) == "ready", nil })
	if err != nil {
		t.Fatalf("wait for the child's first word: %v", err)
	}
	err = c.Stop(50 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "killed after 50ms") {
		t.Errorf("error %v, want that it was killed", err)
	}
	if err := c.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v, want signal: killed", err)
	}
	if err := c.Stop(time.Second); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

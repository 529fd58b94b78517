// Command node makes this machine a cluster of one real node, and runs a command in it, with
// KUBECONFIG set, and with a socket by which the machine can be lost and replaced.
//
//	go run ./cmd/node --pause pause.tar --image weir.tar -- kubectl get pods -A
//	go run ./cmd/node --check
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/weir-dev/weir/e2e/node"
	"github.com/weir-dev/weir/e2e/plane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode()) // the command has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	o := node.Options{Plane: plane.Options{Controllers: plane.All, Scheduler: true, Out: os.Stderr}}
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	check := flags.Bool("check", false, "only say what this machine lacks to be a node")
	packages := flags.Bool("packages", false, "only list the Debian packages that a node takes")
	flags.StringVar(&o.Pause, "pause", "", "archive with the image "+node.PauseImage)
	flags.StringVar(&o.Logs, "logs", "", "put the logs of all parts here at the end")
	flags.Func("image", "archive with an image (repeatable)", func(v string) error {
		o.Images = append(o.Images, v)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *packages {
		fmt.Println(strings.Join(node.Packages, " "))
		return nil
	}
	if *check {
		if lacks := node.Missing(); lacks != "" {
			return errors.New(lacks)
		}
		return nil
	}
	if flags.NArg() == 0 {
		return errors.New("name a command to run in the cluster, such as sh")
	}
	started := time.Now()
	n, err := node.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	socket, stop, err := n.Serve() //nolint:contextcheck // it serves until it is stopped
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	fmt.Fprintf(os.Stderr, "node: ready in %.1f s\n", time.Since(started).Seconds())
	cmd := exec.CommandContext(ctx, flags.Arg(0), flags.Args()[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.Kubeconfig, node.SocketVariable+"="+socket)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Ctrl-C reaches the command by the terminal too; one that does not leave is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = plane.DefaultGrace
	return cmd.Run()
}

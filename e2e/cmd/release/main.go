// Command release makes what a release of Weir has, without Docker and the same every time, and
// checks it.
//
//	go run . image    an image of a program, as an archive that containerd, kind, docker and podman load
//	go run . make     all of a release, in one folder
//	go run . verify   a release that is there: sums, provenance, image
//	go run . serve    a registry on this machine that has the image of a release, for tests
//	go run . push     the image of a release, to a registry
//
// It is a module of its own: the control plane's cache is keyed by e2e/go.mod, and no one who
// builds Weir needs this.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var commands = map[string]func(context.Context, []string) error{
	"image": runImage, "make": runMake, "verify": runVerify, "serve": runServe, "push": runPush,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name, args := "", os.Args[1:]
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	run, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "release: %q is no command: say image, make, verify, serve or push\n", name)
		os.Exit(2)
	}
	if err := run(ctx, args); err != nil {
		fmt.Fprintf(os.Stderr, "release %s: %v\n", name, err)
		os.Exit(1)
	}
}

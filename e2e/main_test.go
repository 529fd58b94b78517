package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/weir-dev/weir/e2e/plane"
	"github.com/weir-dev/weir/e2e/weir"
)

// What the tests share: the binary, and a cluster as people have it, in which
// weir is the only collector.
var shared struct {
	binary string
	plugin string // kubectl-weir
	cluster
}

// cluster is a control plane, and the weir that collects in it.
type cluster struct {
	plane *plane.Plane
	weir  *weir.Process
	mode  mode // how weir runs, where policies are enforced
}

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait more than they compute: what bounds them are the gates of
	// fixture_test.go, not the number of processors. The flag is there: testing
	// defines it.
	_ = flag.Set("test.parallel", "1000")
	code, err := run(m)
	if err = errors.Join(err, weir.Races()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background() // a signal ends this process, and that its children
	dir, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	if shared.binary, err = weir.Binary(ctx, dir); err != nil {
		return 0, err
	}
	if err := os.Setenv("WEIR_BIN", shared.binary); err != nil { // for weirtest
		return 0, err
	}
	if shared.plugin, err = weir.Plugin(ctx, dir); err != nil {
		return 0, err
	}
	if shared.plane, err = plane.Start(ctx, plane.Options{
		Controllers: plane.WithoutCollectors, Scheduler: true, Kwok: true, Audit: true, Out: os.Stderr,
	}); err != nil {
		return 0, err
	}
	defer func() { _ = shared.plane.Stop() }() // the same
	kubeconfig, err := identity(ctx, shared.plane, weirUser)
	if err != nil {
		return 0, err
	}
	shared.weir, err = weir.Start(ctx, weir.Options{Binary: shared.binary, Kubeconfig: kubeconfig, Dir: dir, LeaderElect: true, Flags: []string{weir.NoBrake}})
	if err != nil {
		return 0, err
	}
	defer shared.weir.Kill()
	defer stopEnforced()
	return m.Run(), nil
}

package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-dev/weir/controller"
)

// gcFlags are the flags of weir gc.
type gcFlags struct {
	clusterFlags
	process processFlags
	control string
}

func gcCommand() *cobra.Command {
	var f gcFlags
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Run the collectors for a control plane that has none: for tests, envtest, kwok",
		Long: `Run the garbage collector and the namespace controller for an API server that has none: that of
a test, of envtest, or of kwok. It works at once, without policies, limits, Lease or webhook, so
it must not run where another collector does. With --control programs can ask whether anything
is left to do.`,
		Example: `  weir gc --kubeconfig envtest.kubeconfig --control unix:weir.sock
  curl --unix-socket weir.sock http://weir/idle`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run(ctrl.SetupSignalHandler()) },
	}
	fs := cmd.Flags()
	f.register(fs)
	fs.StringVar(&f.process.logFormat, "log-format", "text", "text or json")
	fs.IntVarP(&f.process.verbosity, "verbosity", "v", 0, "1 also logs why nothing is done")
	fs.StringVar(&f.control, "control", "", "unix:PATH of a socket that answers /ready, /idle and /objects/UID; "+
		"empty: none")
	return cmd
}

// socket returns the path of --control; "" if there is none.
func (f *gcFlags) socket() (string, error) {
	path, isUnix := strings.CutPrefix(f.control, "unix:")
	if f.control != "" && (!isUnix || path == "") {
		return "", fmt.Errorf("--control %q: must be unix:PATH", f.control)
	}
	return path, nil
}

func (f *gcFlags) run(ctx context.Context) error {
	path, err := f.socket()
	if err != nil {
		return err
	}
	f.process.metricsAddress, f.process.healthAddress = noAddress, noAddress
	if err := f.process.check(); err != nil {
		return err
	}
	b, err := beginWithoutPolicies(ctx, &f.clusterFlags, &f.process)
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Options{Config: b.config, Namespaces: controller.DefaultNamespaceSyncs,
		Log: b.log})
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Follow(ctx) })
	group.Go(func() error { return c.Lead(ctx) })
	if path != "" {
		if err := serveControl(ctx, group, path, c); err != nil {
			return err
		}
	}
	return group.Wait()
}

// serveControl serves a socket that only the user of this process can open.
func serveControl(ctx context.Context, group *errgroup.Group, path string, c *controller.Controller) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--control: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	s := &http.Server{Handler: c.ControlHandler(), ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	group.Go(func() error { return serveOn(ctx, "--control", l, s) })
	return nil
}

// serveOn serves until ctx ends, which also ends requests under way: clients can ask again.
func serveOn(ctx context.Context, what string, l net.Listener, s *http.Server) error {
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return nil
}

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/tools/release"
	"github.com/weir-dev/weir/webhook"
)

// releaseFlags are the flags of weir release.
type releaseFlags struct {
	clusterFlags
	release.Release
	stop        string
	helmRelease string
}

func releaseCommand() *cobra.Command {
	var f releaseFlags
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Remove weir's finalizer from all objects, to uninstall weir or to run without it",
		Long: `Remove weir's finalizer from all objects, to uninstall weir or to run without it: first delete
weir's ValidatingAdmissionPolicies and its webhook configurations, then remove the finalizer
weir.dev/propagation, and with it the annotation weir.dev/armed-at, from each object of each
kind. Requests that came before may still store the finalizer, so all objects are looked at once
more 35 s after the webhook configurations were deleted. An object that is being deleted and
waits for weir then waits for its other finalizers only. Last, delete the Leases and ConfigMaps
in which the controller keeps its state. Nothing else is changed, and policies stay.

It can be interrupted and run again at any time. It refuses to begin while a controller holds
its Lease, because that would put the finalizer back. A controller that runs without leader
election is not noticed: stop it first.

It fails if anything could not be released or looked at, and names it.`,
		Example: `  weir release --dry-run
  weir release
  weir release --stop-controller weir-system/weir-controller`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRelease(ctrl.SetupSignalHandler(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	f.register(fs)
	fs.StringVar(&f.LeaseNamespace, "leader-elect-namespace", "",
		"namespace of the controller's Lease; default: that of --stop-controller; without it, and where none is there, "+
			"all are searched")
	fs.StringVar(&f.stop, "stop-controller", "", "NAMESPACE/NAME of the controller's Deployment, which is scaled to 0 "+
		"first, and waited for")
	fs.StringVar(&f.helmRelease, "helm-release", "",
		"for the chart's Job: end with exit code 4, and change nothing, if the Deployment of --stop-controller is there "+
			"and is not of this Helm release; with - always, because the chart was rendered without a cluster")
	fs.BoolVar(&f.Force, "force", false, "go on although a controller holds its Lease, or although that cannot be "+
		"found out")
	forTests(fs, testArmingWindow, &f.Window, webhook.DefaultArmingWindow)
	fs.BoolVar(&f.DryRun, "dry-run", false, "change nothing, and list what would be released")
	return cmd
}

// check returns the controller's Deployment, and what is wrong with the flags.
func (f *releaseFlags) check() (types.NamespacedName, error) {
	deployment, err := pair("--stop-controller", f.stop)
	w := wrong{err, checkNamespace("--leader-elect-namespace", f.LeaseNamespace)}
	w.unless(f.helmRelease == "" || f.stop != "",
		"--helm-release %s: set --stop-controller, whose Deployment says of which Helm release it is", f.helmRelease)
	return deployment, errors.Join(w...)
}

func runRelease(ctx context.Context, f *releaseFlags, out, progress io.Writer) error {
	deployment, err := f.check()
	if err != nil {
		return err
	}
	config, err := f.restConfig()
	if err != nil {
		return err
	}
	if _, err := reach(ctx, config); err != nil {
		return err
	}
	if f.helmRelease != "" {
		if err := release.RunByHelm(ctx, config, f.helmRelease, deployment); err != nil {
			return orInterrupted(ctx, err)
		}
	}
	if deployment.Name != "" && !f.DryRun {
		if err := release.StopController(ctx, config, deployment); err != nil {
			return orInterrupted(ctx, err)
		}
	}
	r := f.Release
	r.Config, r.LeaseLikely = config, r.LeaseNamespace == ""
	r.LeaseNamespace = cmp.Or(r.LeaseNamespace, deployment.Namespace)
	r.Progress = func(now release.Released) {
		say(progress, "%d of %d kinds; objects: %d seen, %d released, %d failed", now.Looked, now.Kinds, now.Seen,
			now.Released, now.Failed)
	}
	if f.DryRun {
		r.Found = func(what string) { say(out, "%s", what) }
	}
	done, err := r.Run(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: what was released stays released; run it again to go on", errInterrupted)
	}
	if err != nil {
		return err
	}
	for _, line := range done.Failures {
		say(progress, "%s", line)
	}
	did := "released %d of %s in %s, and deleted %s and %s of weir's own"
	if f.DryRun {
		did = "would release %d of %s in %s, and delete %s and %s of weir's own"
	}
	say(progress, did, done.Released, words.Count(done.Seen, "object", "objects"),
		words.Count(done.Kinds, "kind", "kinds"),
		words.Count(done.WebhooksBefore, "webhook configuration", "webhook configurations"),
		words.Count(done.Own, "object", "objects"))
	if n := len(done.Failures); n > 0 {
		return fmt.Errorf("%s could not be released or looked at; run it again when the cause is gone",
			words.Count(n, "thing", "things"))
	}
	return nil
}

// say writes a line for the user. An error is dropped: the terminal or log is gone.
func say(to io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(to, format+"\n", args...)
}

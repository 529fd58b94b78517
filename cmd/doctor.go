package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/tools/doctor"
)

// doctorFlags are the flags of weir doctor.
type doctorFlags struct {
	clusterFlags
	mode, namespace string
	webhook         bool
}

func doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether Weir fits the collectors of a cluster, and whether the API server asks its webhook",
		Long: `Say whether Weir fits the collectors of a cluster, and whether the API server asks its webhook:
which garbage collector and namespace controller work, which admission policies and webhooks of
others let only these through by name, and whether a dry-run delete of the Lease weir-canary
comes back refused by the webhook. It can be run before Weir is installed, and when something is
wrong. It changes nothing. With --webhook it only finds out whether the API server asks the
webhook, which helm test does.

It fails if there is a problem. What cannot be read is reported as unknown, and is no problem.`,
		Example: `  weir doctor
  weir doctor --mode replace
  weir doctor -n weir-system --webhook`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := ctrl.SetupSignalHandler()
			return orInterrupted(ctx, runDoctor(ctx, &f, cmd.OutOrStdout()))
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *doctorFlags) register(fs *pflag.FlagSet) {
	f.clusterFlags.register(fs)
	fs.StringVar(&f.mode, "mode", "", "the mode that is asked about: shadow, companion or replace; default: that of "+
		"the Deployment weir-controller, else companion")
	fs.StringVarP(&f.namespace, "namespace", "n", "weir-system", "Weir's namespace")
	fs.BoolVar(&f.webhook, "webhook", false, "only find out whether the API server asks the webhook, for 30s at most: "+
		"a dry-run delete of the Lease weir-canary has to come back refused by it; needs the right to delete that Lease")
}

func (f *doctorFlags) check() error {
	var w wrong
	w.unless(f.mode == "" || f.mode == modeCompanion || f.mode == modeReplace || f.mode == modeShadow,
		"--mode %q: must be shadow, companion or replace", f.mode)
	// It may be from a variable without a value: every request would go to no namespace.
	w.unless(f.namespace != "", "--namespace %q: must be the name of a namespace", f.namespace)
	w.add(checkNamespace("--namespace", f.namespace))
	w.unless(!f.webhook || f.mode == "", "--webhook finds out one thing: leave --mode out")
	return errors.Join(w...)
}

func runDoctor(ctx context.Context, f *doctorFlags, out io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	config, err := f.restConfig()
	if err != nil {
		return err
	}
	if _, err := reach(ctx, config); err != nil {
		return err
	}
	p, err := newPatient(config, f.namespace)
	if err != nil {
		return err
	}
	if f.webhook {
		return p.printAsked(ctx, out)
	}
	facts := p.read(ctx, f.mode)
	if ctx.Err() != nil { // facts that were cut off by then are not unknown
		return errInterrupted
	}
	findings := doctor.Examine(facts)
	if err := printFindings(out, findings); err != nil {
		return err
	}
	problems := 0
	for _, one := range findings {
		if one.Grade == doctor.Problem {
			problems++
		}
	}
	if problems > 0 {
		return fmt.Errorf("%s in %s mode", words.Count(problems, "problem", "problems"), facts.Mode)
	}
	return nil
}

// printFindings writes the findings, each with what to do below it. Flush returns errors of writes.
func printFindings(out io.Writer, findings []doctor.Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		says := strings.ReplaceAll(f.Says, "\n", " ")
		say(w, "%s\t%s\t%s", f.Grade, f.About, says)
		if f.Do != "" {
			say(w, "\t\t→ %s", f.Do)
		}
	}
	return w.Flush()
}

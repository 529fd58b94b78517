package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

func shadowCommand() *cobra.Command {
	var output string
	var gate report.Gate
	cmd := &cobra.Command{
		Use:   "shadow FILE",
		Short: "Show what a weir in shadow mode has found, from its --shadow-report",
		Long: `Show what a weir in shadow mode has found, from its --shadow-report; - is standard input. It says how many decisions of
Weir the cluster's own collector carried out, how much later, and names each difference: what Weir would have deleted or
changed and the cluster did not, and what was deleted although Weir would have kept it.

With --gate it fails unless Weir has compared for as long, is still running, sees all kinds, and found no difference. Differences
on purpose that release or keep do not count. Those that delete do, because in replace mode those objects go: the gate names
them, and --accept NAME accepts those of that name. It names kinds that Weir cannot see in the same way.`,
		Example: `  weir controller --mode shadow --shadow-report shadow.json
  weir shadow shadow.json
  weir shadow shadow.json --gate 24h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(report.CheckOutput(output), gate.Check()); err != nil {
				return err
			}
			return runShadow(args[0], output, gate, cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&gate.Lasted, "gate", 0, "fail unless there was no difference for this long; 0: only show")
	cmd.Flags().StringArrayVar(&gate.Accept, "accept", nil, report.AcceptUsage)
	cmd.Flags().StringVarP(&output, "output", "o", report.Text, "text or json")
	return cmd
}

func runShadow(path, output string, gate report.Gate, out io.Writer) error {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read the report: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	r, err := report.Read(in)
	if err != nil {
		return fmt.Errorf("read the report %s: %w", path, err)
	}
	return r.Show(out, output, time.Now(), gate)
}

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/controller/shadow"
)

func shadowCommand() *cobra.Command {
	var output string
	var gate time.Duration
	cmd := &cobra.Command{
		Use:   "shadow FILE",
		Short: "Show what a weir in shadow mode has found, from its --shadow-report",
		Long: `Show what a weir in shadow mode has found, from its --shadow-report; - is standard input. It says how many decisions of
Weir the cluster's own collector carried out, how much later, and names each difference: what Weir would have deleted or
changed and the cluster did not, and what was deleted although Weir would have kept it.

With --gate it fails unless Weir has compared for as long, is still running, and found no difference.`,
		Example: `  weir controller --mode shadow --shadow-report shadow.json
  weir shadow shadow.json
  weir shadow shadow.json --gate 24h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q: must be text or json", output)
			}
			return runShadow(args[0], output, gate, cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&gate, "gate", 0, "fail unless there was no difference for this long; 0: only show")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func runShadow(path, output string, gate time.Duration, out io.Writer) error {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read the report: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	var r shadow.Report
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("read the report %s: %w", path, err)
	}
	if r.Since.IsZero() {
		return fmt.Errorf("read the report %s: it is none of a weir in shadow mode", path)
	}
	var err error
	if output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.Draw(out)
	}
	if err != nil || gate == 0 {
		return err
	}
	if err := r.Gate(time.Now(), gate); err != nil {
		return fmt.Errorf("the gate is closed: %w", err)
	}
	return nil
}

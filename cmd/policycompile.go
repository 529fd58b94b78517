package cmd

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	kubeversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/policies"
)

// errLeftOut is the error of policy compile if the API server alone cannot judge all of the
// policies.
var errLeftOut = errors.New("not all can be judged by the API server alone")

func policyCompileCommand() *cobra.Command {
	var kubernetes string
	cmd := &cobra.Command{
		Use:   "compile FILE...",
		Short: "Print what the API server can judge by itself, without Weir",
		Long: `Print policies as ValidatingAdmissionPolicies, which the API server judges by itself: they hold
in a cluster without Weir. What needs Weir is left out, and named on standard error; the command
then ends with exit code 3. A confirmation is asked for and given as with Weir. The files are
judged together, as weir policy lint does; with an error in them nothing is printed.`,
		Example: `  weir policy compile my.yaml | kubectl apply -f -
  weir policy compile --kubernetes 1.30 my.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := kubeversion.ParseMajorMinor(kubernetes)
			if err != nil {
				return fmt.Errorf("--kubernetes %q: must be a version such as 1.30", kubernetes)
			}
			if oldest := kubeversion.MajorMinor(1, 30); v.LessThan(oldest) {
				return fmt.Errorf("--kubernetes %s: ValidatingAdmissionPolicies need %s", v, oldest)
			}
			set, problems, _, err := load(args)
			if err != nil {
				return err
			}
			for _, p := range problems {
				if !p.Warning {
					return fmt.Errorf("%s", p)
				}
			}
			return printCompiled(cmd.OutOrStdout(), cmd.ErrOrStderr(), set.InProcess(v, false))
		},
	}
	cmd.Flags().StringVar(&kubernetes, "kubernetes", "1.36", "the version of the API server")
	return cmd
}

func printCompiled(out, left io.Writer, compiled []policies.InProcess) error {
	var text, without strings.Builder
	for _, p := range compiled {
		for _, l := range p.LeftOut {
			say(&without, "%s: %s is left out: %s", p.Policy, l.Field, l.Why)
		}
		if p.Admission == nil {
			continue
		}
		for _, object := range []any{p.Admission, p.Binding} {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err != nil {
				return err
			}
			delete(fields, "status")
			data, err := yaml.Marshal(fields)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "---\n%s", data)
		}
	}
	_, err := io.WriteString(left, without.String())
	if err == nil {
		_, err = io.WriteString(out, text.String())
	}
	if err == nil && without.Len() > 0 {
		err = errLeftOut
	}
	return err
}

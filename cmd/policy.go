package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/casefile"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check and test policies, without a cluster",
	}
	cmd.AddCommand(policyLintCommand(), policyTestCommand(), policyCompileCommand(), policyCRDsCommand())
	return cmd
}

func policyLintCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find what is wrong with policies",
		Long: `Find what is wrong with policies: everything that the API server would refuse, and what it
cannot see, such as CEL that does not compile. The files are judged together, as weir reads them
with --policy-dir. Warnings are things that are likely not meant; only errors make the command
fail.`,
		Example: `  weir policy lint policies/*.yaml
  weir policy lint -o json my.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q: must be text or json", output)
			}
			_, problems, count, err := load(args)
			if err != nil {
				return err
			}
			if err := printProblems(cmd.OutOrStdout(), output, problems, count); err != nil {
				return err
			}
			if n := countErrors(problems); n > 0 {
				return fmt.Errorf("%s in the policies", words.Count(n, "error", "errors"))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// load compiles the policies in files. It returns all their problems, and the number of policies.
func load(files []string) (set *policies.Set, problems []policies.Problem, count int, err error) {
	var sources []policies.Source
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("read policies: %w", err)
		}
		s, bad := policies.Parse(f, data)
		if len(s) == 0 && len(bad) == 0 {
			bad = []policies.Problem{{File: f, Message: "there is no policy in the file"}}
		}
		sources, problems = append(sources, s...), append(problems, bad...)
	}
	set = policies.Build(nil, sources, policies.Options{})
	return set, append(problems, set.Problems()...), len(sources), nil
}

func printProblems(w io.Writer, output string, problems []policies.Problem, count int) error {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Policies int                `json:"policies"`
			Problems []policies.Problem `json:"problems"`
		}{count, append([]policies.Problem{}, problems...)})
	}
	var b strings.Builder
	for _, p := range problems {
		say(&b, "%s", p)
	}
	errs := countErrors(problems)
	say(&b, "%s, %s, %s", words.Count(count, "policy", "policies"), words.Count(errs, "error", "errors"),
		words.Count(len(problems)-errs, "warning", "warnings"))
	_, err := io.WriteString(w, b.String())
	return err
}

func countErrors(problems []policies.Problem) int {
	n := 0
	for _, p := range problems {
		if !p.Warning {
			n++
		}
	}
	return n
}

func policyTestCommand() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Ask policies about requests, and compare the decisions with those expected",
		Long: `Ask policies about requests, and compare the decisions with those expected. DIR is searched,
with its subdirectories, for YAML files that have a list of cases; docs/policies/testing.md says
what is in them. No cluster is needed.`,
		Example: "  weir policy test policies/testdata",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			results, err := runCases(args[0])
			if err != nil {
				return err
			}
			failed, err := printResults(cmd.OutOrStdout(), results, verbose)
			if err == nil && failed > 0 {
				err = fmt.Errorf("%s failed", words.Count(failed, "case", "cases"))
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "name the cases that pass, too")
	return cmd
}

func runCases(dir string) ([]casefile.Result, error) {
	var results []casefile.Result
	at := dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		at = filepath.Clean(dir) + string(filepath.Separator) // follows a link, too
	}
	err := filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || (filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml") {
			return err
		}
		path = filepath.Clean(path)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !casefile.HasCases(data) {
			return nil
		}
		r, err := casefile.Run(path, data, func(p string) ([]byte, error) {
			if !filepath.IsAbs(p) {
				p = filepath.Join(filepath.Dir(path), p)
			}
			return os.ReadFile(p)
		})
		results = append(results, r...)
		return err
	})
	if err == nil && len(results) == 0 {
		err = errors.New("find cases in " + dir + ": there is no YAML file with a list of cases")
	}
	return results, err
}

func printResults(w io.Writer, results []casefile.Result, verbose bool) (failed int, err error) {
	var b strings.Builder
	for _, r := range results {
		if r.Diff != "" {
			failed++
			fmt.Fprintf(&b, "FAIL  %s: %s (- expected, + decided)\n%s", r.File, r.Name, r.Diff)
		} else if verbose {
			say(&b, "ok    %s: %s", r.File, r.Name)
		}
	}
	say(&b, "%d passed, %d failed", len(results)-failed, failed)
	_, err = io.WriteString(w, b.String())
	return failed, err
}

func policyCRDsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "crds",
		Short:   "Print the CustomResourceDefinitions of the policies, of HeldCollections and of the archive",
		Example: "  weir policy crds | kubectl apply --server-side -f -",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := fs.Glob(policies.CRDs, "crds/*.yaml")
			if err != nil {
				return err
			}
			for _, f := range files {
				data, err := policies.CRDs.ReadFile(f)
				if err != nil {
					return fmt.Errorf("print %s: %w", f, err)
				}
				if _, err := cmd.OutOrStdout().Write(data); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

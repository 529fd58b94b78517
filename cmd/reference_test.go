package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/weir-dev/weir/ask"
)

// TestTheReferenceIsWhatHelpSays of each command of weir and of kubectl weir, one page a command.
func TestTheReferenceIsWhatHelpSays(t *testing.T) {
	const dir = "../docs/reference"
	pages, there := map[string]string{}, map[string]string{}
	for _, root := range []*cobra.Command{Root(), ask.Root()} {
		root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 98"))
		addPages(root, pages)
	}
	if *rewrite {
		for name, text := range pages {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		there[f.Name()] = string(text)
	}
	if diff := cmp.Diff(there, pages); diff != "" {
		t.Errorf("run make generate (-page +help):\n%s", diff)
	}
}

// addPages adds the page of a command, and of its subcommands.
func addPages(c *cobra.Command, pages map[string]string) {
	for _, sub := range c.Commands() {
		addPages(sub, pages)
	}
	pages[strings.ReplaceAll(c.CommandPath(), " ", "_")+".md"] = page(c)
}

// page is the help of a command, without kubectl's own flags.
func page(c *cobra.Command) string {
	more, kubectl := "", pflag.NewFlagSet("kubectl", pflag.PanicOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(kubectl)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if g := kubectl.Lookup(f.Name); g != nil && g.Usage == f.Usage {
			f.Hidden, more = true, "\nIt also takes kubectl's own flags, such as `--context` and `--as`.\n"
		}
	})
	var help bytes.Buffer
	c.SetOut(&help)
	_ = c.Help() // a buffer takes everything
	text := strings.ReplaceAll(help.String(), "\t", "    ")
	return fmt.Sprintf("# %s\n\n```\n%s\n```\n%s", c.CommandPath(), strings.TrimSpace(text), more)
}

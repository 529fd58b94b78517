// Command reference writes what --help says of each command into a directory, one Markdown page a
// command.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/weir-dev/weir/ask"
	"github.com/weir-dev/weir/cmd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference DIRECTORY")
		os.Exit(2)
	}
	for _, root := range []*cobra.Command{cmd.Root(), ask.Root()} {
		root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 98"))
		if err := tree(root, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "reference:", err)
			os.Exit(1)
		}
	}
}

// tree writes the page of a command and of its subcommands.
func tree(c *cobra.Command, directory string) error {
	for _, sub := range c.Commands() {
		if err := tree(sub, directory); err != nil {
			return err
		}
	}
	path := filepath.Join(directory, strings.ReplaceAll(c.CommandPath(), " ", "_")+".md")
	return os.WriteFile(path, []byte(page(c)), 0o644)
}

// page returns the help of a command, without kubectl's own flags.
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

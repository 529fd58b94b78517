// Command reference writes the command reference into a directory, one Markdown page a command.
package main

import (
	"cmp"
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
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(commands string) error {
	weir, plugin := cmd.Root(), ask.Root()
	kubectl := &cobra.Command{Use: "kubectl's own"}
	genericclioptions.NewConfigFlags(true).AddFlags(kubectl.Flags())
	for _, root := range []*cobra.Command{weir, plugin} {
		for _, c := range append(root.Commands(), root) {
			elsewhere := []*cobra.Command{kubectl}
			switch c.Name() {
			case "webhook":
				elsewhere = append(elsewhere, find(weir, "controller"))
			case "up":
				elsewhere = append(elsewhere, find(weir, "controller"), find(weir, "webhook"))
			}
			if err := tree(c, c != root, commands, elsewhere); err != nil {
				return err
			}
		}
	}
	return nil
}

func find(root *cobra.Command, name string) *cobra.Command {
	c, _, err := root.Find([]string{name})
	if err != nil {
		panic(err)
	}
	return c
}

// tree writes the page of a command and, with below, of its subcommands.
func tree(c *cobra.Command, below bool, directory string, elsewhere []*cobra.Command) error {
	if below {
		for _, sub := range c.Commands() {
			if err := tree(sub, true, directory, elsewhere); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(directory, file(c)), []byte(page(c, elsewhere)), 0o644)
}

func file(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md" }

// page describes a command. Flags that mean the same elsewhere are only referred to.
func page(c *cobra.Command, elsewhere []*cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n", c.CommandPath(), folded(cmp.Or(c.Long, c.Short)))
	if c.Runnable() {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", c.Example)
	}
	rows, also := strings.Builder{}, map[*cobra.Command]bool{}
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		for _, other := range elsewhere {
			if g := other.Flags().Lookup(f.Name); g != nil && g.Usage == f.Usage {
				if g.DefValue == f.DefValue || f.Name == "cache-dir" {
					also[other] = true
					return
				}
			}
		}
		if f.Name != "help" && !f.Hidden {
			rows.WriteString(row(f))
		}
	})
	if rows.Len() > 0 {
		fmt.Fprintf(&b, "\n| flag | what it does | default |\n|---|---|---|\n%s", rows.String())
	}
	for i, other := range elsewhere {
		switch {
		case !also[other]:
		case i == 0:
			b.WriteString("\nIt also takes kubectl's own flags, such as `--context` and `--as`.\n")
		default:
			fmt.Fprintf(&b, "\nIt also takes flags of [%s](%s).\n", other.CommandPath(), file(other))
		}
	}
	b.WriteString("\n")
	if c.HasParent() {
		fmt.Fprintf(&b, "See also [%s](%s).\n", c.Parent().CommandPath(), file(c.Parent()))
	}
	for _, sub := range c.Commands() {
		fmt.Fprintln(&b, folded(fmt.Sprintf("* [%s](%s): %s", sub.CommandPath(), file(sub), sub.Short)))
	}
	return b.String()
}

func row(f *pflag.Flag) string {
	name, usage := pflag.UnquoteUsage(f)
	flag := "--" + f.Name
	if f.Shorthand != "" {
		flag = "-" + f.Shorthand + ", " + flag
	}
	def := ""
	if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" {
		def = "`" + f.DefValue + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", strings.TrimSpace(flag+" "+name), strings.ReplaceAll(usage, "|", `\|`), def)
}

// folded wraps paragraphs at 100 columns. Indented lines are code.
func folded(text string) string {
	var out []string
	line := ""
	flush := func() {
		if line != "" {
			out = append(out, line)
		}
		line = ""
	}
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		if l == "" || strings.HasPrefix(l, " ") {
			flush()
			if l != "" {
				l = "  " + l // four spaces of indentation mean code
			}
			out = append(out, l)
			continue
		}
		for word := range strings.FieldsSeq(l) {
			if len(line)+1+len(word) > 100 {
				flush()
			}
			line = strings.TrimSpace(line + " " + word)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

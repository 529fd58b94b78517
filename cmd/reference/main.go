// Command reference writes what is generated of the documents from the code: the command reference,
// one Markdown page a command, into a directory; and the page of metrics.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/weir-dev/weir/ask"
	"github.com/weir-dev/weir/cmd"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference DIRECTORY METRICS")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(commands, metrics string) error {
	for _, root := range []*cobra.Command{cmd.Root(), ask.Root()} {
		root.CompletionOptions.DisableDefaultCmd = true
		quiet(root)
		if err := doc.GenMarkdownTree(root, commands); err != nil {
			return err
		}
	}
	var page bytes.Buffer
	if err := cmd.WriteMetrics(&page); err != nil {
		return err
	}
	return os.WriteFile(metrics, page.Bytes(), 0o644)
}

// quiet leaves out the date: a page is to change only when the command does.
func quiet(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		quiet(sub)
	}
}

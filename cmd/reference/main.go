// Command reference writes the command reference, one Markdown page a command, into a directory.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/weir-dev/weir/cmd"
	"github.com/weir-dev/weir/cmd/ask"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference DIRECTORY")
		os.Exit(2)
	}
	for _, root := range []*cobra.Command{cmd.Root(), ask.Root()} {
		root.CompletionOptions.DisableDefaultCmd = true
		quiet(root)
		if err := doc.GenMarkdownTree(root, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "reference:", err)
			os.Exit(1)
		}
	}
}

// quiet leaves out the date: a page is to change only when the command does.
func quiet(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		quiet(sub)
	}
}

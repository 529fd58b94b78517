// Command weir decides what falls when something in a Kubernetes cluster is deleted, and carries it out.
package main

import (
	"os"

	"github.com/weir-dev/weir/cmd"
)

func main() {
	if err := cmd.Root().Execute(); err != nil {
		os.Exit(1)
	}
}

// Command weir decides what is deleted when something in a Kubernetes cluster is deleted, and
// carries it out.
package main

import (
	"os"

	"github.com/weir-dev/weir/cmd"
)

func main() {
	os.Exit(cmd.ExitCode(cmd.Root().Execute()))
}

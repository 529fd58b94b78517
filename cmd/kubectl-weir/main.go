// Command kubectl-weir is the plugin of kubectl that shows what a delete would also delete, and why
// an object is not deleted.
package main

import (
	"errors"
	"os"

	"github.com/weir-dev/weir/ask"
)

func main() {
	err := ask.Root().Execute()
	var exit ask.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.Code)
	case err != nil:
		os.Exit(1)
	}
}

// Command weir of this directory prints its version.
package main

import (
	"fmt"

	"github.com/weir-dev/weir/cmd"
)

func main() { fmt.Println(cmd.Version()) }

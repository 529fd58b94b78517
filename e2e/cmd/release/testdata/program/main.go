// Command weir of this directory prints its version.
package main

import (
	"fmt"

	"github.com/weir-dev/weir/internal/version"
)

func main() { fmt.Println(version.Weir()) }

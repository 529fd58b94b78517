// Command pause is the container that holds the namespaces of a pod: it does nothing, and leaves
// when it is told to.
package main

import (
	"os/signal"
	"syscall"

	"os"
)

func main() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	<-told
}

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

// startCollector starts kube-controller-manager with the built-in collectors, and returns when they
// work.
func (w *fixture) startCollector() {
	w.Helper()
	if err := w.plane.StartController(context.WithoutCancel(w.Context()), plane.Collectors, lifted...); err != nil {
		w.Fatal(err)
	}
	name := fmt.Sprint("begins-", time.Now().UnixNano())
	w.make(fmt.Sprintf("cm %s\ncm %s-leaf owners=(%s)", name, name, name))
	w.delete(name, background)
	w.awaitGoneIn(collectorBegins, name+"-leaf")
}

package controller

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// lookAgain is how often Idle looks.
const lookAgain = 10 * time.Millisecond

// Idle returns when nothing is left to do about what was written before the call. It returns the
// objects that terminate and wait for finalizers of others. All watches have to have come as far as
// a read that begins now, with an empty queue, twice in a row: what was done before the first may
// have had consequences. An API server before 1.31 cannot say how far a watch has come; there the
// queue decides.
func (c *Controller) Idle(ctx context.Context) ([]graph.View, error) {
	for quiet := 0; ; {
		list, err := c.clients.open.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, err
		}
		for now := (graph.Ref{ResourceVersion: list.ResourceVersion}); !c.watcher.Shown(now); {
			if err := await.Pause(ctx, lookAgain); err != nil {
				return nil, err
			}
		}
		waiting, ends := c.waiting()
		if c.leads.Load() && c.workers.Oldest() == 0 && !ends {
			if quiet++; quiet == 2 {
				return waiting, nil
			}
			continue
		}
		quiet = 0
		if err := await.Pause(ctx, lookAgain); err != nil {
			return nil, err
		}
	}
}

// waiting returns the objects that terminate and have finalizers of others. ends: a namespace
// terminates that holds none of these, so it ends by itself.
func (c *Controller) waiting() (waiting []graph.View, ends bool) {
	holds := map[string]bool{}
	var namespaces []string
	for _, v := range c.store.Views() {
		if !v.Deleting {
			continue
		}
		isNamespace := v.Kind == kinds.Namespaces
		if foreign(v.Finalizers) {
			waiting = append(waiting, v)
			holds[v.Namespace] = true
			if isNamespace {
				holds[v.Name] = true
			}
		}
		if isNamespace {
			namespaces = append(namespaces, v.Name)
		}
	}
	return waiting, slices.ContainsFunc(namespaces, func(name string) bool { return !holds[name] })
}

func foreign(finalizers []string) bool {
	return slices.ContainsFunc(finalizers, func(f string) bool {
		return f != metav1.FinalizerDeleteDependents && f != metav1.FinalizerOrphanDependents
	})
}

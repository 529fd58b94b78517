package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/controller/beside"
	"github.com/weir-dev/weir/controller/events"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
)

// observe has the built-in controllers be observed in what they have to do anyway, beside what told has others hear.
func (c *Controller) observe(told *follow.Listener, rep *events.Reporter) error {
	core, err := typedcorev1.NewForConfigAndClient(c.clients.bounded, c.clients.boundedClient)
	if err != nil {
		return fmt.Errorf("make a client for namespaces: %w", err)
	}
	lag := beside.NewLag(c.store.Read, c.options.Registry)
	c.spaces = beside.NewSpaces(beside.SpacesOptions{
		Namespaces: core.Namespaces(), Content: c.store.Inventory, Kinds: func() []graph.KindStats { return c.store.Stats().Kinds },
		Now: c.clients.clock.Now, Stands: c.canary.Stands, Reporter: rep, Registry: c.options.Registry, Log: c.options.Log,
	})
	rewound, namespace, going := told.Rewound, told.Namespace, told.Going
	told.Showing = lag.Showing
	told.Going = func(uid types.UID) {
		if going != nil {
			going(uid)
		}
		lag.Going(uid)
	}
	told.Rewound = func(why string) { rewound(why); lag.Rewound(); c.spaces.Rewound() }
	told.Namespace = func(name string, how follow.Change) {
		if namespace != nil {
			namespace(name, how)
		}
		if how == follow.Deleting {
			c.spaces.Deleting(name)
		} else {
			c.spaces.Gone(name)
		}
	}
	return nil
}

package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/beside"
	"github.com/weir-dev/weir/controller/follow"
)

// observe has the built-in collector be observed in what it has to do anyway, beside what told has
// others hear.
func (c *Controller) observe(told *follow.Listener) {
	lag := beside.NewLag(c.store.Read, c.options.Registry)
	rewound, going := told.Rewound, told.Going
	told.Showing = lag.Showing
	told.Going = func(uid types.UID) {
		if going != nil {
			going(uid)
		}
		lag.Going(uid)
	}
	told.Rewound = func(why string) { rewound(why); lag.Rewound() }
}

package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Listener gets what watches and discovery show, beside the graph. Functions that are nil are not
// called.
type Listener struct {
	// Served gets each discovery result, before the graph does.
	Served func([]graph.Resource)
	// Namespace gets each change to a namespace.
	Namespace func(name string, how Change)
	// Terminating gets each object that is seen to terminate, when the graph has it.
	Terminating func(*metav1.PartialObjectMetadata)
	// Showing gets each object that a watch shows, before the graph does. The function that it
	// returns is called when the graph has the object; it may be nil.
	Showing func(*graph.Object) func()
	// Going gets the uid of each object that a watch shows to be gone, before the graph does.
	Going func(uid types.UID)
	// Rewound is called when the history of the API server went back, with the evidence.
	Rewound func(why string)
}

// listeners are called one after the other, in the order in which they were added.
type listeners []Listener

func (all listeners) served(r []graph.Resource) {
	for _, l := range all {
		if l.Served != nil {
			l.Served(r)
		}
	}
}

func (all listeners) namespace(name string, how Change) {
	for _, l := range all {
		if l.Namespace != nil {
			l.Namespace(name, how)
		}
	}
}

func (all listeners) terminating(m *metav1.PartialObjectMetadata) {
	for _, l := range all {
		if l.Terminating != nil {
			l.Terminating(m)
		}
	}
}

func (all listeners) showing(o *graph.Object) (shown []func()) {
	for _, l := range all {
		if l.Showing == nil {
			continue
		}
		if f := l.Showing(o); f != nil {
			shown = append(shown, f)
		}
	}
	return shown
}

func (all listeners) going(uid types.UID) {
	for _, l := range all {
		if l.Going != nil {
			l.Going(uid)
		}
	}
}

func (all listeners) rewound(why string) {
	for _, l := range all {
		if l.Rewound != nil {
			l.Rewound(why)
		}
	}
}

package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Listener is who is told what watches and discovery show, each besides the graph; what is nil is
// not told.
type Listener struct {
	// Served is told of each discovery, before the graph is.
	Served func([]graph.Resource)
	// Namespace is told of each change to a namespace.
	Namespace func(name string, how Change)
	// Webhooks is told of each webhook configuration that is there.
	Webhooks func(configuration *metav1.PartialObjectMetadata)
	// Terminating is told of each object that is seen to terminate, when the graph has it.
	Terminating func(*metav1.PartialObjectMetadata)
	// Showing is told of each object that a watch shows, before the graph is; what it returns is
	// called when the graph has it, if it is not nil.
	Showing func(*graph.Object) func()
	// Going is told of each object that a watch shows to be gone, before the graph is.
	Going func(uid types.UID)
	// Rewound is told that the history of the API server went back, and why that is known.
	Rewound func(why string)
}

// listeners are told one after the other, in the order in which they came.
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

func (all listeners) webhooks(m *metav1.PartialObjectMetadata, how Change) {
	for _, l := range all {
		if l.Webhooks != nil && how != Went {
			l.Webhooks(m)
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

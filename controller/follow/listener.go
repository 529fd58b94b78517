package follow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Listener gets what watches and discovery show, beside the graph. Functions that are nil are not
// called. One listener at most has Namespace, and one Showing.
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

// Listen adds a listener. It must be called before Run.
func (w *Watcher) Listen(l Listener) {
	all := &w.listener
	all.Served, all.Terminating = both(all.Served, l.Served), both(all.Terminating, l.Terminating)
	all.Going, all.Rewound = both(all.Going, l.Going), both(all.Rewound, l.Rewound)
	if l.Namespace != nil {
		all.Namespace = l.Namespace
	}
	if l.Showing != nil {
		all.Showing = l.Showing
	}
}

// both returns a function that calls a and then b, either of which may be nil.
func both[T any](a, b func(T)) func(T) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(what T) { a(what); b(what) }
}

// tell calls a function that may be nil.
func tell[T any](f func(T), what T) {
	if f != nil {
		f(what)
	}
}

package collect

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// inRow is how many objects of the first lane a worker takes before one of the other: neither waits
// for the end of the other.
const inRow = 3

// lanes is the order in which objects are decided about: those that are being deleted come first,
// since a request more ends what has been begun. Otherwise a cascade of thousands of objects that
// carry a finalizer would send all deletes before the first object goes. It has no lock: the queue
// around it has.
type lanes struct {
	ending      func(types.UID) bool // tells whether an object is being deleted
	first, rest workqueue.Queue[types.UID]
	row         int // of the first lane that were taken since one of the other
}

func newLanes(ending func(types.UID) bool) *lanes {
	return &lanes{ending: ending, first: workqueue.DefaultQueue[types.UID](), rest: workqueue.DefaultQueue[types.UID]()}
}

// Touch implements workqueue.Queue: what waits stays where it is.
func (l *lanes) Touch(types.UID) {}

// Push implements workqueue.Queue.
func (l *lanes) Push(uid types.UID) {
	if l.ending(uid) {
		l.first.Push(uid)
	} else {
		l.rest.Push(uid)
	}
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int { return l.first.Len() + l.rest.Len() }

// Pop implements workqueue.Queue.
func (l *lanes) Pop() types.UID {
	if l.rest.Len() == 0 || l.first.Len() > 0 && l.row < inRow {
		l.row++
		return l.first.Pop()
	}
	l.row = 0
	return l.rest.Pop()
}

package collect

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// inRow is how many objects of the first lane a worker takes before one of the other, so that
// neither starves.
const inRow = 3

// lanes is the order of the queue. Objects that are being deleted come first, since one more
// request ends what has begun: otherwise a cascade of thousands of objects with a finalizer would
// send all deletes before the first object goes. It has no lock, since the queue around it has.
type lanes struct {
	ending      func(types.UID) bool // reports whether an object is being deleted
	first, rest workqueue.Queue[types.UID]
	row         int // how many were taken from the first lane since one from the other
}

func newLanes(ending func(types.UID) bool) *lanes {
	return &lanes{ending: ending, first: workqueue.DefaultQueue[types.UID](), rest: workqueue.DefaultQueue[types.UID]()}
}

// Touch implements workqueue.Queue. An object that waits keeps its place.
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

package namespaces

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/follow"
)

// ending is a namespace that is being deleted.
type ending struct {
	// seen is when the deletion was first seen, by the local clock. Waits count from here, because the
	// deletionTimestamp is of another clock.
	seen time.Time
	uid  types.UID // empty until the first pass reads the namespace
	// failing is since when passes end in errors, and told when that was last reported.
	failing, told time.Time
}

// Changed is called with every change of a namespace object.
func (d *Drainer) Changed(name string, how follow.Change) {
	d.mu.Lock()
	_, known := d.ending[name]
	switch {
	case how != follow.Deleting:
		delete(d.ending, name)
	case !known:
		d.ending[name] = ending{seen: time.Now()}
	}
	leading := d.leading
	if how != follow.Went {
		delete(d.gone, name) // all of its content is deleted, or none can be told apart from late content
	}
	d.mu.Unlock()
	switch {
	case how == follow.Deleting && leading:
		if !known {
			d.rediscover()
		}
		d.wake(name, "it is being deleted", 0)
	case how == follow.Went:
		d.departs(name)
		d.end(name)
	}
}

// absent records that there is no such namespace, in case its watch has not shown that and never
// will.
func (d *Drainer) absent(name string, e ending) {
	d.mu.Lock()
	same := d.ending[name] == e
	if same {
		delete(d.ending, name)
	}
	d.mu.Unlock()
	if same {
		d.departs(name)
	}
}

// firstSeen returns when the deletion of a namespace was first seen.
func (d *Drainer) firstSeen(name string, uid types.UID) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.ending[name]
	if !ok {
		return time.Now()
	}
	if e.uid != "" && e.uid != uid { // another namespace of that name, which the watch has not shown yet
		e.seen = time.Now()
		d.rediscover()
	}
	e.uid = uid
	d.ending[name] = e
	return e.seen
}

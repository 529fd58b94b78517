// Package requested remembers, in a process that answers admission reviews, whose request it was that an object be deleted, and says so on
// the object once the watch has shown that it was.
//
// A review is hearsay: whoever knows the webhook's path and reaches its port can send one. So nothing is written on its word: what is told is
// that an object was deleted, which a watch has shown, as the graph knows its name, and beside that who asked, as the review said. It is
// evidence; the proof is the audit log of the API server.
//
// Goroutines: none. Locks: one, which is held for the time of a look into a map.
package requested

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

const (
	// mostRequests bounds the requests that are remembered. More are not.
	mostRequests = 1000
	// remembered is for how long a request is: the API server gives up on a DELETE after 34 s (RB 6.18).
	remembered = time.Minute
	// mostUsers is how many users are named who asked for the same, and mostName how much of a name, in bytes.
	mostUsers, mostName = 3, 256
	// eventsASecond, after eventsAtOnce, are written.
	eventsASecond, eventsAtOnce = 5, 100
)

// namespaces take along what is in them, whatever depends on them.
var namespaces = schema.GroupResource{Resource: "namespaces"}

// Record remembers requests.
type Record struct {
	find  func(types.UID) (graph.View, bool)
	limit *rate.Limiter
	open  atomic.Int64 // how many are remembered: most of the time none is

	mu  sync.Mutex
	say func(v graph.View, text string) // nil: nothing is told, and nothing is remembered
	of  map[types.UID]*request
}

// request is what was asked for one object.
type request struct {
	object graph.View
	users  []string
	how    string
	at     time.Time
}

// New makes one that tells nothing yet. find finds an object in the graph.
func New(find func(types.UID) (graph.View, bool)) *Record {
	return &Record{find: find, limit: rate.NewLimiter(eventsASecond, eventsAtOnce), of: map[types.UID]*request{}}
}

// Tell has say be told of each object that was deleted, and by whose request. It must not block.
func (r *Record) Tell(say func(v graph.View, text string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say = say
}

// Saw takes in a review of a DELETE that was let through: its user, and in words how it is carried out. Only objects that take others along
// are remembered.
func (r *Record) Saw(uid types.UID, user, how string) {
	v, known := r.find(uid)
	if !known || v.Deleting || v.Dependents == 0 && v.Kind != namespaces {
		return
	}
	user = short(user)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.say == nil {
		return
	}
	now := time.Now()
	one := r.of[uid]
	if one == nil {
		if len(r.of) >= mostRequests {
			r.forget(now)
		}
		if len(r.of) >= mostRequests {
			return
		}
		one = &request{object: v, at: now}
		r.of[uid] = one
		r.open.Store(int64(len(r.of)))
	}
	for _, known := range one.users {
		if known == user {
			return
		}
	}
	if len(one.users) < mostUsers {
		one.users, one.how = append(one.users, user), how
	}
}

// Deleted is told of each object that a watch has shown to terminate, or to be gone.
func (r *Record) Deleted(uid types.UID) {
	if r.open.Load() == 0 {
		return
	}
	r.mu.Lock()
	one, say := r.of[uid], r.say
	if one != nil {
		delete(r.of, uid)
		r.open.Store(int64(len(r.of)))
	}
	r.mu.Unlock()
	if one == nil || time.Since(one.at) > remembered || !r.limit.Allow() {
		return
	}
	say(one.object, one.String())
}

// Run forgets requests by which nothing was deleted, until ctx ends.
func (r *Record) Run(ctx context.Context) error {
	tick := time.NewTicker(remembered)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.mu.Lock()
			r.forget(time.Now())
			r.mu.Unlock()
		}
	}
}

func (r *Record) forget(now time.Time) {
	for uid, one := range r.of {
		if now.Sub(one.at) > remembered {
			delete(r.of, uid)
		}
	}
	r.open.Store(int64(len(r.of)))
}

// String says whose request it was. Of several at the same time it is not known which one did it.
func (q *request) String() string {
	by := strings.Join(q.users, " or ")
	if len(q.users) == mostUsers {
		by += ", or others"
	}
	return fmt.Sprintf("deleted at the request of %s (%s)", by, q.how)
}

// short is a name in one line, and no more of it than mostName.
func short(name string) string {
	name = words.Printable(name)
	if len(name) > mostName {
		name = strings.ToValidUTF8(name[:mostName], "") + "…"
	}
	return name
}

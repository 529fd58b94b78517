// Package requested remembers, in a process that answers admission reviews, whose request it was
// that an object be deleted, and says so on the object once the watch has shown that it was.
//
// A review is hearsay: whoever knows the webhook's path and reaches its port can send one. So
// nothing is written on its word: what is told is that an object was deleted, which a watch has
// shown, as the graph knows its name, and beside that who asked, as the review said. It is
// evidence; the proof is the audit log of the API server.
//
// Whoever may delete in one namespace, or objects of one kind that have none, may do so often: each
// of them has a part of what is remembered and told, and no more of it.
//
// Goroutines: none. Locks: one, which is held while maps of bounded size are read, once a minute as
// a whole.
package requested

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

const (
	// mostParts is how many places have a part at the same time.
	mostParts = 1000
	// remembered is for how long a request is: the API server gives up on a DELETE after 34 s (RB
	// 6.18).
	remembered = time.Minute
	// mostUsers is how many users are named who asked for the same, and mostName how much of a
	// name, in bytes.
	mostUsers, mostName = 3, 256
	// EventsASecond are written, after eventsAtOnce: so many requests are remembered.
	EventsASecond = 10
	eventsAtOnce  = 500
	// ofPartASecond, after ofPartAtOnce, are of one part.
	ofPartASecond, ofPartAtOnce = 1, 50
)

// namespaces take along what is in them, whatever depends on them.
var namespaces = schema.GroupResource{Resource: "namespaces"}

// Record remembers requests.
type Record struct {
	find       func(types.UID) (graph.View, bool)
	limit      *rate.Limiter
	open       atomic.Int64 // how many are remembered: most of the time none is
	unreported prometheus.Counter

	mu    sync.Mutex
	say   func(v graph.View, text string) // nil: nothing is told, and nothing is remembered
	of    map[types.UID]*request
	parts map[origin]*rate.Limiter // what each origin has of the bounds
}

// origin is where the objects of a part are: a namespace, or outside of all, a kind.
type origin struct {
	namespace string
	kind      schema.GroupResource // of objects without a namespace only
}

func originOf(v graph.View) origin {
	if v.Namespace != "" {
		return origin{namespace: v.Namespace}
	}
	return origin{kind: v.Kind}
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
	return &Record{
		find: find, limit: rate.NewLimiter(EventsASecond, eventsAtOnce), of: map[types.UID]*request{}, parts: map[origin]*rate.Limiter{},
		unreported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_deletion_requests_unreported_total",
			Help: "Reviews of DELETE requests, for objects with dependents and for namespaces, that no Event reports because there were too many at once.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (r *Record) Describe(ch chan<- *prometheus.Desc) { r.unreported.Describe(ch) }

// Collect implements prometheus.Collector.
func (r *Record) Collect(ch chan<- prometheus.Metric) { r.unreported.Collect(ch) }

// Tell has say be told of each object that was deleted, and by whose request. It must not block.
func (r *Record) Tell(say func(v graph.View, text string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say = say
}

// Saw takes in a review of a DELETE that was let through: its user, and in words how it is carried
// out. Only objects that take others along are remembered.
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
	one := r.of[uid]
	if one == nil || time.Since(one.at) > remembered { // or that one has failed
		if !r.allowLocked(originOf(v)) {
			r.unreported.Inc()
			return
		}
		one = &request{object: v, at: time.Now()}
		r.of[uid] = one
		r.open.Store(int64(len(r.of)))
	}
	if !slices.Contains(one.users, user) && len(one.users) < mostUsers {
		one.users, one.how = append(one.users, user), how
	}
}

// allowLocked tells whether one more request is remembered.
func (r *Record) allowLocked(from origin) bool {
	part := r.parts[from]
	if part == nil {
		if len(r.parts) >= mostParts {
			return false
		}
		part = rate.NewLimiter(ofPartASecond, ofPartAtOnce)
		r.parts[from] = part
	}
	return part.Allow() && r.limit.Allow()
}

// Deleted is told of each object that a watch has shown to terminate, or to be gone.
func (r *Record) Deleted(uid types.UID) {
	if r.open.Load() == 0 {
		return
	}
	r.mu.Lock()
	one, say := r.of[uid], r.say
	delete(r.of, uid)
	r.open.Store(int64(len(r.of)))
	r.mu.Unlock()
	if one != nil && time.Since(one.at) <= remembered {
		say(one.object, one.String())
	}
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
			r.forget(time.Now())
		}
	}
}

// forget drops the requests that are old, and the parts that have all of theirs left.
func (r *Record) forget(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(_ types.UID, one *request) bool { return now.Sub(one.at) > remembered })
	r.open.Store(int64(len(r.of)))
	maps.DeleteFunc(r.parts, func(_ origin, part *rate.Limiter) bool { return part.TokensAt(now) >= ofPartAtOnce })
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
	return words.Cut(words.Printable(name), mostName)
}

// Package requested remembers, in a process that answers admission reviews, whose request it was that an object be deleted, and says so on
// the object once the watch has shown that it was.
//
// A review is hearsay: whoever knows the webhook's path and reaches its port can send one. So nothing is written on its word: what is told is
// that an object was deleted, which a watch has shown, as the graph knows its name, and beside that who asked, as the review said. It is
// evidence; the proof is the audit log of the API server.
//
// Whoever may delete in one namespace may do so often, so each namespace has a part of what is remembered and told, and no more of it.
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

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

const (
	// mostRequests bounds the requests that are remembered, and mostOfNamespace those about objects in one namespace. More are not.
	mostRequests, mostOfNamespace = 1000, 200
	// remembered is for how long a request is: the API server gives up on a DELETE after 34 s (RB 6.18).
	remembered = time.Minute
	// mostUsers is how many users are named who asked for the same, and mostName how much of a name, in bytes.
	mostUsers, mostName = 3, 256
	// EventsASecond are written, after eventsAtOnce.
	EventsASecond = 10
	eventsAtOnce  = 500
	// ofNamespaceASecond, after ofNamespaceAtOnce, are about objects in one namespace.
	ofNamespaceASecond, ofNamespaceAtOnce = 1, 50
)

// namespaces take along what is in them, whatever depends on them.
var namespaces = schema.GroupResource{Resource: "namespaces"}

// Record remembers requests.
type Record struct {
	find   func(types.UID) (graph.View, bool)
	limit  *rate.Limiter
	open   atomic.Int64 // how many are remembered: most of the time none is
	untold prometheus.Counter

	mu    sync.Mutex
	say   func(v graph.View, text string) // nil: nothing is told, and nothing is remembered
	of    map[types.UID]*request
	parts map[string]*part // by namespace
}

// part is what one namespace has of the bounds.
type part struct {
	open  int // how many of its requests are remembered
	limit *rate.Limiter
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
		find: find, limit: rate.NewLimiter(EventsASecond, eventsAtOnce), of: map[types.UID]*request{}, parts: map[string]*part{},
		untold: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_deletion_requests_untold_total",
			Help: "Requests to delete objects with dependents, or namespaces, that the webhook saw and no Event tells of, because there were too many at once.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (r *Record) Describe(ch chan<- *prometheus.Desc) { r.untold.Describe(ch) }

// Collect implements prometheus.Collector.
func (r *Record) Collect(ch chan<- prometheus.Metric) { r.untold.Collect(ch) }

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
	one := r.of[uid]
	if one != nil && time.Since(one.at) > remembered { // that one has failed
		r.drop(one)
		one = nil
	}
	if one == nil {
		if one = r.remember(v); one == nil {
			r.untold.Inc()
			return
		}
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

// remember makes room for a request about an object; nil: there is none. The lock is held.
func (r *Record) remember(v graph.View) *request {
	now := time.Now()
	of := r.parts[v.Namespace]
	if len(r.of) >= mostRequests || of == nil && len(r.parts) >= mostRequests || of != nil && of.open >= mostOfNamespace {
		r.forget(now)
		of = r.parts[v.Namespace]
	}
	if len(r.of) >= mostRequests {
		return nil
	}
	if v.Namespace != "" { // objects without a namespace share the bounds of all
		if of == nil {
			if len(r.parts) >= mostRequests {
				return nil
			}
			of = &part{limit: rate.NewLimiter(ofNamespaceASecond, ofNamespaceAtOnce)}
			r.parts[v.Namespace] = of
		}
		if of.open >= mostOfNamespace {
			return nil
		}
		of.open++
	}
	one := &request{object: v, at: now}
	r.of[v.UID] = one
	r.open.Store(int64(len(r.of)))
	return one
}

// Deleted is told of each object that a watch has shown to terminate, or to be gone.
func (r *Record) Deleted(uid types.UID) {
	if r.open.Load() == 0 {
		return
	}
	r.mu.Lock()
	one, say := r.of[uid], r.say
	tell := false
	if one != nil {
		of := r.drop(one)
		if time.Since(one.at) <= remembered {
			tell = (of == nil || of.limit.Allow()) && r.limit.Allow()
			if !tell {
				r.untold.Inc()
			}
		}
	}
	r.mu.Unlock()
	if tell {
		say(one.object, one.String())
	}
}

// drop forgets a request, and returns the part of its namespace, if it has one. The lock is held.
func (r *Record) drop(one *request) *part {
	delete(r.of, one.object.UID)
	r.open.Store(int64(len(r.of)))
	of := r.parts[one.object.Namespace]
	if of != nil {
		of.open--
	}
	return of
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

// forget drops the requests that are old, and the parts of namespaces that have all of theirs left. The lock is held.
func (r *Record) forget(now time.Time) {
	for _, one := range r.of {
		if now.Sub(one.at) > remembered {
			r.drop(one)
		}
	}
	for namespace, of := range r.parts {
		if of.open == 0 && of.limit.TokensAt(now) >= ofNamespaceAtOnce {
			delete(r.parts, namespace)
		}
	}
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

// Package requested remembers, in a process that answers admission reviews, which user requested the
// deletion of an object, and reports that on the object once the watch has shown the deletion.
//
// A review is not proof: any client that knows the webhook's path and reaches its port can send one.
// So nothing is reported on its word alone. A watch has shown that the object was deleted, the graph
// has its name, and only the user is as the review said. Proof is the audit log of the API server.
//
// Goroutines: none. Locks: one, which is held while a map of bounded size is read; once a minute all
// of it is.
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
	// remembered is how long a request is remembered. The API server gives up on a DELETE after 34 s
	// (RB 6.18).
	remembered = time.Minute
	// mostUsers is how many users are named who requested the same, and mostName how many bytes of a
	// name.
	mostUsers, mostName = 3, 256
	// EventsASecond and eventsAtOnce limit the requests that are remembered, and so the Events.
	EventsASecond = 10
	eventsAtOnce  = 500
)

// namespaces take their content along, whether or not anything depends on them.
var namespaces = schema.GroupResource{Resource: "namespaces"}

// Record remembers requests.
type Record struct {
	find       func(types.UID) (graph.View, bool)
	limit      *rate.Limiter
	open       atomic.Int64 // how many are remembered, mostly 0
	unreported prometheus.Counter

	mu  sync.Mutex
	say func(v graph.View, text string) // nil: nothing is reported or remembered
	of  map[types.UID]*request
}

// request is who requested the deletion of one object.
type request struct {
	object graph.View
	users  []string
	how    string
	at     time.Time
}

// New returns a Record that reports nothing before Tell. find finds an object in the graph.
func New(find func(types.UID) (graph.View, bool)) *Record {
	return &Record{
		find: find, limit: rate.NewLimiter(EventsASecond, eventsAtOnce), of: map[types.UID]*request{},
		unreported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_deletion_requests_unreported_total",
			Help: "Reviews of DELETE requests, for objects with dependents and for namespaces, " +
				"that no Event reports because there were too many at once.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (r *Record) Describe(ch chan<- *prometheus.Desc) { r.unreported.Describe(ch) }

// Collect implements prometheus.Collector.
func (r *Record) Collect(ch chan<- prometheus.Metric) { r.unreported.Collect(ch) }

// Tell sets the function that is called with each object that was deleted, and whose request it
// was. It must not block.
func (r *Record) Tell(say func(v graph.View, text string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say = say
}

// Saw records a review of a DELETE that was allowed, with its user, and how it is carried out in
// words. Only objects whose deletion takes others along are remembered.
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
	if one == nil || time.Since(one.at) > remembered { // or the earlier request has failed
		if !r.limit.Allow() {
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

// Deleted is called with each object that a watch has shown to terminate, or to be gone.
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

// Run forgets requests that deleted nothing, until ctx ends.
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

// forget drops old requests.
func (r *Record) forget(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(_ types.UID, one *request) bool { return now.Sub(one.at) > remembered })
	r.open.Store(int64(len(r.of)))
}

// String returns the users. If there are several it is not known whose request it was.
func (q *request) String() string {
	by := strings.Join(q.users, " or ")
	if len(q.users) == mostUsers {
		by += ", or others"
	}
	return fmt.Sprintf("deleted at the request of %s (%s)", by, q.how)
}

// short returns a name in one line, and at most mostName bytes of it.
func short(name string) string {
	return words.Cut(words.Printable(name), mostName)
}

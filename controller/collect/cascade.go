package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

const (
	// quiet is how long nothing more is deleted before a cascade is reported.
	quiet = 5 * time.Second
	// remembered is how long a later delete still counts to the same cascade: so long at least, and
	// twice as long at most.
	remembered = 10 * time.Minute
	// mostRemembered bounds the objects of cascades that are remembered. Objects without dependents
	// are not. What follows from a forgotten object begins a cascade of its own.
	mostRemembered = 50_000
	// mostNames is how many objects of a cascade are named, and allNames how many of all cascades
	// within remembered.
	mostNames, allNames = 50, 20_000
	// cascadeEvents and cascadeBurst limit Events to few beside the deletes. The log has all
	// cascades.
	cascadeEvents, cascadeBurst = 10, 500
)

// cascades record what was collected because one object went, over all generations, for people who
// ask later.
type cascades struct {
	events *rate.Limiter
	record func(root graph.Claim, text, collected string)
	log    logr.Logger

	mu      sync.Mutex
	of, old map[types.UID]*cascade // by the root, and by each collected object that has dependents
	turned  time.Time              // when of became old
	names   int                    // how many objects were named since then
	open    []*cascade             // those with something to report
}

// collected is an object that was deleted, as it is reported.
type collected struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// cascade is one root with what went because of it.
type cascade struct {
	root        graph.Claim
	counts      map[schema.GroupResource]int
	total       int
	begun, last time.Time
	open        bool        // there is something to report
	names       []collected // the first ones
}

func newCascades(record func(root graph.Claim, text, collected string), log logr.Logger) *cascades {
	return &cascades{
		events: rate.NewLimiter(cascadeEvents, cascadeBurst), record: record, log: log,
		of: map[types.UID]*cascade{}, turned: time.Now(),
	}
}

// run reports cascades that have come to rest until ctx ends, and then all of them.
func (c *cascades) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.report(0)
			return
		case <-tick.C:
			c.report(quiet)
		}
	}
}

// collected counts an object that was deleted, and returns the root of its cascade.
func (c *cascades) collected(a graph.Action) (root graph.Claim) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	one := cmp.Or(c.of[a.Cause.UID], c.old[a.Cause.UID])
	if one == nil {
		one = &cascade{root: a.Cause, counts: map[schema.GroupResource]int{}, begun: now}
	}
	c.of[a.Cause.UID] = one
	if a.Dependents > 0 {
		c.of[a.Object.UID] = one
	}
	if !one.open {
		one.open = true
		c.open = append(c.open, one)
	}
	if len(one.names) < mostNames && c.names < allNames {
		c.names++
		one.names = append(one.names, collected{a.Object.Kind.String(), a.Object.Namespace, a.Object.Name, a.Object.UID})
	}
	one.counts[a.Object.Kind]++
	one.total++
	one.last = now
	return one.root
}

// report reports the cascades in which nothing has happened for a while.
func (c *cascades) report(while time.Duration) {
	now := time.Now()
	var due []cascade
	c.mu.Lock()
	c.open = slices.DeleteFunc(c.open, func(one *cascade) bool {
		if now.Sub(one.last) < while {
			return false
		}
		told := *one
		told.counts, told.names = maps.Clone(one.counts), slices.Clone(one.names)
		due = append(due, told)
		one.open = false
		return true
	})
	if now.Sub(c.turned) >= remembered || len(c.of) >= mostRemembered {
		c.of, c.old, c.turned, c.names = map[types.UID]*cascade{}, c.of, now, 0
	}
	c.mu.Unlock()
	for i := range due {
		text := due[i].String()
		c.log.Info("cascade", "root", due[i].root.String(), "uid", due[i].root.UID, "what", text)
		if c.events.AllowN(now, 1) {
			names, _ := json.Marshal(due[i].names) // cannot fail: it has only strings
			c.record(due[i].root, text, string(names))
		}
	}
}

// String says what was collected, the kinds with most objects first.
func (c *cascade) String() string {
	objects := "objects that it owned, directly or not, were"
	if c.total == 1 {
		objects = "object that it owned was"
	}
	return fmt.Sprintf("%d %s deleted by garbage collection within %s: %s",
		c.total, objects, duration.HumanDuration(max(time.Second, c.last.Sub(c.begun))), words.Kinds(c.counts))
}

package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/graph"
)

const (
	// quiet is for how long nothing more goes when a cascade is told.
	quiet = 5 * time.Second
	// remembered is for how long what goes on later still counts as the same cascade.
	remembered = 10 * time.Minute
	// mostRemembered bounds the objects that are known to be part of a cascade. Those that nothing
	// refers to need not be.
	mostRemembered = 50_000
	// mostNames is how many objects of a cascade are named, and allNames how many of all cascades
	// are remembered.
	mostNames, allNames = 50, 20_000
	// mostRulings bounds how many policies are remembered that have a say about objects that have
	// not gone yet.
	mostRulings = 10_000
	// cascadeEvents a second, after cascadeBurst at once, are few beside the deletes that they
	// tell. The log tells all cascades.
	cascadeEvents, cascadeBurst = 10, 500
)

// cascades record what was collected because one object went, over all generations, for people who
// ask later.
type cascades struct {
	events *rate.Limiter
	record func(root graph.Claim, text, collected string)
	log    logr.Logger

	mu     sync.Mutex
	of     map[types.UID]*cascade // by the root, and by each object that was collected and has dependents
	open   []*cascade             // each once
	full   bool                   // there was nothing to forget, a moment ago
	missed int                    // objects that were not recorded
	names  int                    // objects that are named
	ruled  map[types.UID]string   // what policies say of the deletion of objects, in words
}

// collected is an object that went, as it is told.
type collected struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// cascade is one root with what went because of it.
type cascade struct {
	root            graph.Claim
	counts          map[schema.GroupResource]int
	total, reported int
	begun, last     time.Time
	uids            []types.UID // under which it is found
	names           []collected // the first
	policy          string      // what one says of the root's deletion, in words
}

func newCascades(record func(root graph.Claim, text, collected string), log logr.Logger) *cascades {
	return &cascades{events: rate.NewLimiter(cascadeEvents, cascadeBurst), record: record, log: log, of: map[types.UID]*cascade{}, ruled: map[types.UID]string{}}
}

// rule takes in what a policy says of the deletion of an object, in words.
func (c *cascades) rule(uid types.UID, policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ruled) >= mostRulings {
		clear(c.ruled) // and is not told of some
	}
	c.ruled[uid] = policy
}

// run tells of cascades that have come to rest until ctx ends, and then of all.
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
	one := c.of[a.Cause.UID]
	if one == nil {
		one = &cascade{root: a.Cause, counts: map[schema.GroupResource]int{}, begun: now, policy: c.ruled[a.Cause.UID]}
		delete(c.ruled, a.Cause.UID)
		if !c.remember(a.Cause.UID, one) {
			c.missed++
			return a.Cause
		}
		c.open = append(c.open, one)
	}
	if len(one.names) < mostNames && c.names < allNames {
		one.names = append(one.names, collected{a.Object.Kind.String(), a.Object.Namespace, a.Object.Name, a.Object.UID})
		c.names++
	}
	one.counts[a.Object.Kind]++
	one.total++
	one.last = now
	if a.Dependents > 0 && c.of[a.Object.UID] == nil {
		c.remember(a.Object.UID, one) // or else its dependents are told as a cascade of their own
	}
	return one.root
}

// remember has a cascade be found under a uid; false if there are too many.
func (c *cascades) remember(uid types.UID, one *cascade) bool {
	if len(c.of) >= mostRemembered && !c.full {
		c.forget(func(old *cascade) bool { return old.reported == old.total })
		c.full = len(c.of) >= mostRemembered // and is not asked again before the next report
	}
	if len(c.of) >= mostRemembered {
		return false
	}
	c.of[uid] = one
	one.uids = append(one.uids, uid)
	return true
}

// report tells of cascades in which nothing has happened for a while.
func (c *cascades) report(while time.Duration) {
	c.mu.Lock()
	now := time.Now()
	var due []cascade
	for _, one := range c.open {
		if one.total > one.reported && now.Sub(one.last) >= while {
			one.reported = one.total
			due = append(due, cascade{root: one.root, counts: maps.Clone(one.counts), total: one.total, begun: one.begun, last: one.last, names: slices.Clone(one.names), policy: one.policy})
		}
	}
	c.forget(func(old *cascade) bool { return old.reported == old.total && now.Sub(old.last) >= remembered })
	missed := c.missed
	c.missed, c.full = 0, false
	c.mu.Unlock()
	for i := range due {
		text := due[i].String()
		c.log.Info("cascade", "root", due[i].root.String(), "uid", due[i].root.UID, "what", text)
		if c.events.AllowN(now, 1) {
			names, _ := json.Marshal(due[i].names) // strings can be encoded
			c.record(due[i].root, text, string(names))
		}
	}
	if missed > 0 {
		c.log.Info("objects were deleted whose cascade is not recorded: there are too many cascades at once", "objects", missed)
	}
}

// forget drops some of the cascades.
func (c *cascades) forget(which func(*cascade) bool) {
	c.open = slices.DeleteFunc(c.open, func(one *cascade) bool {
		if !which(one) {
			return false
		}
		for _, uid := range one.uids {
			delete(c.of, uid)
		}
		c.names -= len(one.names)
		return true
	})
}

// String says what was collected, the kinds with most objects first.
func (c *cascade) String() string {
	kinds := slices.SortedFunc(maps.Keys(c.counts), func(a, b schema.GroupResource) int {
		return cmp.Or(c.counts[b]-c.counts[a], cmp.Compare(a.String(), b.String()))
	})
	const most = 10
	var parts []string
	for _, k := range kinds[:min(len(kinds), most)] {
		parts = append(parts, fmt.Sprintf("%d %s", c.counts[k], k))
	}
	if more := len(kinds) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("objects of %d more kinds", more))
	}
	objects := "objects that it owned, directly or not, were"
	if c.total == 1 {
		objects = "object that it owned was"
	}
	by := ""
	if c.policy != "" {
		by = "; " + c.policy
	}
	return fmt.Sprintf("%d %s deleted by garbage collection within %s: %s%s",
		c.total, objects, duration.HumanDuration(max(time.Second, c.last.Sub(c.begun))), strings.Join(parts, ", "), by)
}

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// Brake limits what one process deletes by inference, until a person decides. Moments are ticks.
type Brake interface {
	// Allows tells whether an object may be deleted now; if not, after how many ticks that is to be
	// asked again, or 0 for when a person has decided.
	Allows(now int, a graph.Action, g *graph.Graph) (yes bool, again int)
	Deleted(a graph.Action)
	Rewound(now int)
	// Hold holds what the process before held, and Held are the kinds of owners for which something
	// is held.
	Hold(now int, owners schema.GroupResource)
	Held() []schema.GroupResource
	// Waits are the objects that wait for a decision. open: there may be more, once lookups are
	// answered.
	Waits(g *graph.Graph, owners schema.GroupResource) (uids []types.UID, open bool)
	Decide(owners schema.GroupResource, uids []types.UID)
	Ends(owners schema.GroupResource)
}

// Braking is a cluster with a brake.
type Braking struct {
	New func() Brake // for each process
	// Most objects may go for one kind of owners within Window ticks, and for all kinds of which
	// nothing is held within Together ticks, before a person has decided.
	Most, Window, Together int
	// Deaf is for tests of the simulation: what a person lets go is not decided about once more.
	Deaf bool
}

// RunBraked is Run where each process has a brake. Besides what must hold there: what is not
// inherited goes past no limit before a person has decided, and when all decisions were made
// nothing is held, and nothing is left that should go.
func RunBraked(seed uint64, steps int, b Braking) (Stats, error) {
	w := newCluster(seed)
	w.braking = &persons{Braking: b, written: map[schema.GroupResource]bool{}, decided: map[types.UID]bool{}, seen: map[schema.GroupResource][][]types.UID{}}
	err := w.play(steps)
	return w.stats, err
}

// persons are those who decide, and what is written down for the next leader.
type persons struct {
	Braking
	written map[schema.GroupResource]bool
	decided map[types.UID]bool
	seen    map[schema.GroupResource][][]types.UID // what was to be decided about when a person looked
}

// let is when a process let objects through that no person had decided about.
type let struct {
	at   map[types.UID]int
	kept int // since when nothing is held any more; 0: something is
}

// resume gives a process that begins to lead a brake, which holds what the one before it has
// written down.
func (w *cluster) resume(c *collector) {
	if w.braking == nil {
		return
	}
	c.brake, c.lets = w.braking.New(), map[schema.GroupResource]*let{}
	for _, owners := range sortedKinds(w.braking.written) {
		c.brake.Hold(w.now, owners)
	}
}

func sortedKinds(of map[schema.GroupResource]bool) []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(of), func(a, b schema.GroupResource) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// holds asks the brake of a process about an object that a worker has taken, and puts it off if it
// may not go.
func (w *cluster) holds(c *collector, a graph.Action) (held bool, err error) {
	if c.brake == nil || a.Verb != graph.Delete || a.Inferred.Conclusion == graph.Asked {
		return false, nil
	}
	uid := a.Object.UID
	yes, again := c.brake.Allows(w.now, a, c.graph)
	if !yes {
		c.finish(uid, w.now, false)
		if again > 0 {
			c.queue[uid] = &item{at: w.now + again}
		} else {
			w.stats["held"]++
		}
		return true, nil
	}
	if a.Dependents > 0 {
		c.quietly(graph.Collecting{Kind: a.Object.Kind, UID: uid, Inference: a.Inferred}, uid, "")
	}
	return false, w.withinLimit(c, a)
}

// withinLimit tells whether an object may go by what the cluster knows: of what is inherited, a
// part goes with what it depends on.
func (w *cluster) withinLimit(c *collector, a graph.Action) error {
	if w.braking.decided[a.Object.UID] {
		w.stats["went by decision"]++
		return nil
	}
	if a.Inferred.Inherited {
		w.stats["went with what it depends on"]++
		return nil
	}
	w.stats["went before the limit"]++
	of := c.letFor(a.Inferred.Owners)
	if _, already := of.at[a.Object.UID]; !already {
		of.at[a.Object.UID] = w.now
	}
	if n := of.since(w.now - w.braking.Window); n > w.braking.Most {
		return w.tell(c, fmt.Errorf("%s goes, the %dth because of %s, and nobody has decided: %d may",
			a.Object.UID, n, a.Inferred.Owners, w.braking.Most), a.Object.UID)
	}
	kinds, all, held := 0, 0, c.brake.Held()
	for owners, of := range c.lets {
		if n := of.since(w.now - w.braking.Together); n > 0 && !slices.Contains(held, owners) {
			kinds, all = kinds+1, all+n
		}
	}
	if kinds > 1 {
		w.stats["went of several kinds"]++
	}
	if all > w.braking.Most {
		return w.tell(c, fmt.Errorf("%s goes, the %dth because of owners of %d kinds, and nobody has decided: %d may",
			a.Object.UID, all, kinds, w.braking.Most), a.Object.UID)
	}
	return nil
}

// since is how many objects were let through after a moment.
func (l *let) since(moment int) (n int) {
	for _, at := range l.at {
		if at > moment {
			n++
		}
	}
	return n
}

// letFor is what a process let through for a kind of owners.
func (c *collector) letFor(owners schema.GroupResource) *let {
	if c.lets[owners] == nil {
		c.lets[owners] = &let{at: map[types.UID]int{}}
	}
	return c.lets[owners]
}

// keep is what a leader does for what it holds once in a while: it writes that down, and ends what
// holds nothing any more.
func (w *cluster) keep(c *collector) {
	if c.brake == nil {
		return
	}
	for _, owners := range c.brake.Held() {
		of := c.letFor(owners)
		uids, open := c.brake.Waits(c.graph, owners)
		switch {
		case len(uids) > 0:
			slices.Sort(uids)
			seen := append(w.braking.seen[owners], uids)
			w.braking.seen[owners] = seen[max(0, len(seen)-2):]
			fallthrough
		case open:
			w.braking.written[owners], of.kept = true, 0
		case of.kept == 0:
			of.kept = w.now + 1
		case w.now > of.kept:
			w.stats["holds ended"]++
			c.brake.Ends(owners)
			delete(w.braking.written, owners)
			delete(w.braking.seen, owners)
			delete(c.lets, owners)
		}
	}
}

// decide has a person let through what another saw of something that is held.
func (w *cluster) decide(c *collector) {
	if c.brake == nil {
		return
	}
	for _, owners := range c.brake.Held() {
		seen := w.braking.seen[owners]
		if len(seen) == 0 || w.chaos && !w.chance(30) {
			continue
		}
		uids := seen[len(seen)-1]
		if w.chaos {
			uids = pick(w, seen)
		}
		w.stats["decisions"]++
		c.brake.Decide(owners, uids)
		for _, uid := range uids {
			w.braking.decided[uid] = true
			if _, there := c.graph.Find(uid); there && !w.braking.Deaf {
				c.dirty(uid)
			}
		}
	}
}

// heldUp tells what is held when all was decided.
func (w *cluster) heldUp() error {
	if w.leader.brake == nil {
		return nil
	}
	for _, owners := range w.leader.brake.Held() {
		uids, open := w.leader.brake.Waits(w.leader.graph, owners)
		return fmt.Errorf("%s is held still: %v, or may be: %t", owners, uids, open)
	}
	return nil
}

package sim

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// collector is one process: a graph, the watches that feed it, and, while it leads, a queue and
// workers.
type collector struct {
	name    string
	graph   *graph.Graph
	watches []*watch
	served  []graph.Resource // as it was last told
	round   uint64

	leads   bool
	queue   map[types.UID]*item
	workers int // busy ones

	// orphaning are the objects that it saw orphaning and did not see ending foreground after that:
	// what they left, it may not delete.
	orphaning map[types.UID]bool
	unruled   map[types.UID]schema.GroupResource // held, and policies are to be asked
	passes    map[string]*pass                   // by namespace
	waits     map[string]int
	deaf      map[types.UID]bool // objects of whose end its watches did not tell
	brake     Brake              // nil: nothing is limited, or it does not lead
	lets      map[schema.GroupResource]*let
	heard     map[types.UID]bool // and of whose end they did, since the history last went back
	trace     []line
	events    int
}

// item is an object that is to be decided about.
type item struct {
	at    int // the tick from which it may be worked on; -1: nothing to do
	tries int
	busy  bool
	again bool // became dirty while busy
}

// line is one event, to be written as a script if it comes to that.
type line struct {
	ev         graph.Event
	who, label string
}

const mostWorkers = 4

func newCollector(name string, s *server) *collector {
	c := &collector{name: name, graph: graph.New(), queue: map[types.UID]*item{}, orphaning: map[types.UID]bool{}, unruled: map[types.UID]schema.GroupResource{}, deaf: map[types.UID]bool{}, heard: map[types.UID]bool{}, passes: map[string]*pass{}, waits: map[string]int{}}
	holds := graph.Holds{Finalizer: ours}
	c.trace = append(c.trace, line{ev: holds})
	c.graph.Apply(holds)
	for _, k := range s.kinds {
		c.watches = append(c.watches, &watch{kind: k, lost: c.deaf})
	}
	return c
}

// unfollowed are the kinds that may hide objects: as far as the collector knows they are served,
// and it may list them, and their watches have not brought everything. The graph is not asked.
func (c *collector) unfollowed() map[schema.GroupResource]bool {
	kinds := map[schema.GroupResource]bool{}
	for _, w := range c.watches {
		if c.knows(w.kind) && w.kind.Collected && !w.level() && (w.broken || !w.kind.forbidden) {
			kinds[w.kind.GroupResource()] = true
		}
	}
	return kinds
}

// knows tells whether the collector was told last that a kind is served.
func (c *collector) knows(k *kind) bool {
	return slices.ContainsFunc(c.served, func(r graph.Resource) bool { return r.GroupResource() == k.GroupResource() })
}

// overrated finds a kind of which the graph says that it has everything, and its watch has not
// brought that.
func (c *collector) overrated() error {
	for kind := range c.unfollowed() {
		if _, complete := c.graph.Instances(kind); complete {
			return fmt.Errorf("%s: all instances of %s are known, and the watch has not brought them", c.name, kind)
		}
	}
	return nil
}

// told is how much of each kind's log the collector has been told, its last list included.
func (c *collector) told() map[schema.GroupResource]int {
	told := map[schema.GroupResource]int{}
	for _, w := range c.watches {
		if w.running && w.synced && !w.broken && len(w.list) == 0 {
			told[w.kind.GroupResource()] = w.next
		}
	}
	return told
}

// lead begins to work, with what there is to do already.
func (c *collector) lead() {
	c.leads = true
	c.askAll()
	for next := uint32(0); ; {
		uids, cursor := c.graph.Pending(next, 3)
		for _, uid := range uids {
			c.dirty(uid)
		}
		if next = cursor; next == 0 {
			return
		}
	}
}

func (c *collector) dirty(uid types.UID) {
	if !c.leads {
		return
	}
	it := c.queue[uid]
	if it == nil {
		it = &item{}
		c.queue[uid] = it
	}
	it.at = 0
	it.again = it.busy
}

// apply takes in an event.
func (c *collector) apply(ev graph.Event, who types.UID, label string) error {
	switch ev := ev.(type) {
	case graph.Gone:
		c.heard[ev.UID] = true
	case graph.Rewound:
		clear(c.heard)
	}
	c.trace = append(c.trace, line{ev, string(who), label})
	c.events++
	if seen, ok := ev.(graph.Observed); ok {
		o := object{Object: *seen.Object}
		if o.orphaning() {
			c.orphaning[o.UID] = true
		}
	}
	dirty := c.graph.Apply(ev)
	if seen, ok := ev.(graph.Observed); ok {
		c.ask(&object{Object: *seen.Object})
		if v, ok := c.graph.Find(seen.Object.UID); ok && v.Foreground {
			delete(c.orphaning, v.UID) // by its own word, or as was ruled before
		}
	}
	slices.Sort(dirty) // for the sake of the seed
	for _, uid := range dirty {
		c.dirty(uid)
	}
	if c.events%64 == 0 {
		return c.graph.Check()
	}
	return c.overrated()
}

// discover tells the graph which kinds the server serves, and starts and ends watches accordingly.
func (c *collector) discover(s *server) error {
	c.served = nil
	for _, k := range s.kinds {
		if k.served {
			c.served = append(c.served, k.Resource)
		}
	}
	if err := c.apply(graph.Serving{Resources: c.served}, "", ""); err != nil {
		return err
	}
	for _, w := range c.watches {
		if w.kind.served && w.kind.Collected && !w.running {
			w.start()
		}
	}
	return nil
}

// leave ends the watches of kinds that are no longer served: some time after discovery, and whether
// or not they have shown all.
func (c *collector) leave() error {
	for _, w := range c.watches {
		if w.running && !c.knows(w.kind) {
			w.running = false
			if err := c.apply(graph.Stopped{Kind: w.kind.GroupResource()}, "", ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// stale tells whether discovery has something to tell.
func (c *collector) stale(s *server) bool {
	for _, k := range s.kinds {
		if c.knows(k) != k.served {
			return true
		}
	}
	return false
}

// ready are the objects that a worker could take, sorted.
func (c *collector) ready(now int) (uids []types.UID) {
	if !c.leads || c.workers >= mostWorkers {
		return nil
	}
	for uid, it := range c.queue {
		if !it.busy && it.at >= 0 && it.at <= now {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// waiting tells whether an object is queued, now or later, or being worked on.
func (c *collector) waiting() bool {
	for _, it := range c.queue {
		if it.busy || it.at >= 0 {
			return true
		}
	}
	return false
}

// finish ends a worker's turn with an object: it is done, or it is to be tried again later.
func (c *collector) finish(uid types.UID, now int, retry bool) {
	c.workers--
	it := c.queue[uid]
	it.busy = false
	switch {
	case retry:
		it.at = now + 1<<min(it.tries, 6)
		it.tries++
	case it.again:
		it.at, it.tries = 0, 0
	default:
		it.at, it.tries = -1, 0
	}
	if it.again {
		it.at = min(it.at, now)
	}
	it.again = false
	if it.at < 0 {
		delete(c.queue, uid)
	}
}

// quietly takes in what only makes objects wait: as at the edge, nothing becomes work by it.
func (c *collector) quietly(ev graph.Event, who types.UID, label string) {
	c.trace = append(c.trace, line{ev, string(who), label})
	c.events++
	c.graph.Apply(ev)
}

// begin takes an object from the queue, and returns what is to be done about it. A lookup counts as
// under way from here on.
func (c *collector) begin(uid types.UID, label string) graph.Action {
	it := c.queue[uid]
	it.busy, it.again = true, false
	c.workers++
	a := c.graph.Decide(uid)
	switch a.Verb {
	case graph.Lookup:
		c.quietly(graph.LookupStarted{Claim: a.Claim}, uid, label)
	case graph.Keep, graph.Wait:
	default:
		c.trace = append(c.trace, line{nil, string(uid), label}) // sent
	}
	return a
}

// tick is one round of the graph's clock.
func (c *collector) tick() error {
	c.round++
	return c.apply(graph.Recheck{Round: c.round}, "", "")
}

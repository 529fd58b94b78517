package sim

import (
	"cmp"
	"fmt"
	"slices"

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
	// Signs tells whether Allows wants to know who wrote the references for which an object is to
	// go.
	Signs(a graph.Action) bool
	// Hold holds what the process before held, and Held are the causes for which something is held.
	Hold(now int, c graph.Cause)
	Held() []graph.Cause
	// Waits are the objects that wait for a decision. open: there may be more, once lookups are
	// answered.
	Waits(g *graph.Graph, c graph.Cause) (uids []types.UID, open bool)
	Decide(c graph.Cause, uids []types.UID)
	Ends(c graph.Cause)
}

// Braking is a cluster with a brake.
type Braking struct {
	New func() Brake // for each process
	// Most objects may go for one cause within Window ticks, before a person has decided.
	Most, Window int
	// Deaf is for tests of the simulation: what a person lets go is not decided about once more.
	Deaf bool
}

// RunBraked is Run where each process has a brake. Besides what must hold there: what is not
// inherited goes past no limit before a person has decided, and when all decisions were made
// nothing is held, and nothing is left that should go.
func RunBraked(seed uint64, steps int, b Braking) (Stats, error) {
	w := newCluster(seed)
	w.braking = &persons{Braking: b, written: map[graph.Cause]bool{}, decided: map[types.UID]bool{}, seen: map[graph.Cause][][]types.UID{}}
	err := w.play(steps)
	return w.stats, err
}

// persons are those who decide, and what is written down for the next leader.
type persons struct {
	Braking
	written map[graph.Cause]bool
	decided map[types.UID]bool
	seen    map[graph.Cause][][]types.UID // what was to be decided about when a person looked
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
	c.brake, c.lets = w.braking.New(), map[graph.Cause]*let{}
	for _, cause := range sortedCauses(w.braking.written) {
		c.brake.Hold(w.now, cause)
	}
}

func sortedCauses(of map[graph.Cause]bool) (all []graph.Cause) {
	for k := range of {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b graph.Cause) int { return cmp.Compare(a.Owners.String()+a.Writer, b.Owners.String()+b.Writer) })
	return all
}

// holds asks the brake of a process about an object that a worker has taken, and puts it off if it
// may not go.
func (w *cluster) holds(c *collector, a graph.Action) (held bool, err error) {
	if c.brake == nil || a.Verb != graph.Delete || a.Inferred.Conclusion == graph.Asked {
		return false, nil
	}
	uid := a.Object.UID
	if c.brake.Signs(a) && !w.sign(c, &a) {
		again := c.queue[uid].tries > 0
		c.finish(uid, w.now, false)
		c.queue[uid] = &item{at: w.now + 1, tries: 1}
		if again {
			err = w.missed(c, a.Object)
		}
		return true, err
	}
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
	for _, cause := range a.Inferred.Causes() {
		of := c.lets[cause]
		if of == nil {
			of = &let{at: map[types.UID]int{}}
			c.lets[cause] = of
		}
		if _, already := of.at[a.Object.UID]; !already {
			of.at[a.Object.UID] = w.now
		}
		n := 0
		for _, at := range of.at {
			if w.now-at < w.braking.Window {
				n++
			}
		}
		if n > w.braking.Most {
			return w.tell(c, fmt.Errorf("%s goes, the %dth because of %+v, and nobody has decided: %d may", a.Object.UID, n, cause, w.braking.Most), a.Object.UID)
		}
	}
	return nil
}

// sign has a process know who wrote the reference for which an object is to go, as the server has
// it; false if that is not there any more.
func (w *cluster) sign(c *collector, a *graph.Action) bool {
	for _, o := range w.server.all() {
		if writer := o.signed[a.Inferred.Reference]; o.UID == a.Object.UID && writer != "" {
			w.stats["writers"]++
			a.Inferred.Writer = writer
			c.quietly(graph.Wrote{Object: &o.Object, Writer: writer}, o.UID, "")
			return true
		}
	}
	return false
}

// missed tells the graph of an object that is not there any more, of whose end its watch may never
// tell.
func (w *cluster) missed(c *collector, ref graph.Ref) error {
	if k := w.server.kind(ref.Kind); !k.served || k.forbidden || k.objects[ref.UID] != nil {
		return nil
	}
	w.stats["ghosts found"]++
	return c.apply(graph.NotFound{Kind: ref.Kind, UID: ref.UID, History: c.graph.History()}, ref.UID, "")
}

// keep is what a leader does for what it holds once in a while: it writes that down, and ends what
// holds nothing any more.
func (w *cluster) keep(c *collector) {
	if c.brake == nil {
		return
	}
	for _, cause := range c.brake.Held() {
		of := c.lets[cause]
		if of == nil {
			of = &let{at: map[types.UID]int{}}
			c.lets[cause] = of
		}
		uids, open := c.brake.Waits(c.graph, cause)
		switch {
		case len(uids) > 0:
			slices.Sort(uids)
			seen := append(w.braking.seen[cause], uids)
			w.braking.seen[cause] = seen[max(0, len(seen)-2):]
			fallthrough
		case open:
			if cause.Writer != "" && !w.braking.written[cause] {
				w.stats["held for a writer"]++
			}
			w.braking.written[cause], of.kept = true, 0
		case of.kept == 0:
			of.kept = w.now + 1
		case w.now > of.kept:
			w.stats["holds ended"]++
			c.brake.Ends(cause)
			delete(w.braking.written, cause)
			delete(w.braking.seen, cause)
			delete(c.lets, cause)
		}
	}
}

// decide has a person let through what another saw of something that is held.
func (w *cluster) decide(c *collector) {
	if c.brake == nil {
		return
	}
	for _, cause := range c.brake.Held() {
		seen := w.braking.seen[cause]
		if len(seen) == 0 || w.chaos && !w.chance(30) {
			continue
		}
		uids := seen[len(seen)-1]
		if w.chaos {
			uids = pick(w, seen)
		}
		w.stats["decisions"]++
		c.brake.Decide(cause, uids)
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
	for _, cause := range w.leader.brake.Held() {
		uids, open := w.leader.brake.Waits(w.leader.graph, cause)
		return fmt.Errorf("%+v is held still: %v, or may be: %t", cause, uids, open)
	}
	return nil
}

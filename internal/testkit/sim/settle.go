package sim

import (
	"fmt"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/script"
)

// Bounds of settling: rounds of the clock, steps within one, and what a request may cost.
const (
	mostRounds  = 10000
	mostSteps   = 20000
	quietRounds = 1100 // more than the longest pause of the graph
)

// settle delivers everything and lets time pass, until nothing more is written for long enough.
func (w *cluster) settle() error {
	quiet := 0
	requests := w.stats["requests"]
	for round := 0; quiet < quietRounds; round++ {
		if round == mostRounds {
			return w.tell(w.leader, fmt.Errorf("not quiet after %d rounds", round), w.busy()...)
		}
		version := w.server.version
		for steps := 0; w.moving(); steps++ {
			w.stats["steps to settle"]++
			if steps == mostSteps {
				return w.tell(w.leader, fmt.Errorf("still moving after %d steps", steps), w.busy()...)
			}
			if err := w.step(); err != nil {
				return err
			}
		}
		for range 4 {
			if err := w.drain(); err != nil {
				return err
			}
		}
		if quiet++; w.server.version != version || w.leader.waiting() {
			quiet = 0
		}
		if err := w.tick(); err != nil {
			return err
		}
	}
	if err := w.compare(); err != nil {
		return err
	}
	for _, check := range []func() error{w.agrees, w.settled, w.leftBehind, w.heldUp, w.idle, w.replays} {
		if err := check(); err != nil {
			return w.tell(w.leader, err, w.busy()...)
		}
	}
	// Each object may ask for a few things: references go, unblock, delete, finalizer; some earn a
	// conflict.
	if most := 20 * (len(w.server.buried) + mostObjects); w.stats["requests"]-requests > most {
		return w.tell(w.leader, fmt.Errorf("%d requests to settle, %d are enough", w.stats["requests"]-requests, most))
	}
	return nil
}

// compare tells the collectors of objects that they have and the server has not: the watch lost the
// news. It is what the edge does once in a while, all kinds one after the other.
func (w *cluster) compare() error {
	for found := true; found; {
		found = false
		for _, c := range []*collector{w.leader, w.follower} {
			for _, uid := range script.UIDs(c.graph) {
				v, ok := c.graph.Find(uid)
				if !ok || w.server.kind(v.Kind).objects[uid] != nil {
					continue
				}
				found = true
				w.stats["ghosts found"]++
				if err := c.apply(graph.NotFound{Kind: v.Kind, UID: uid, History: c.graph.History()}, "", ""); err != nil {
					return err
				}
			}
		}
		if found {
			return w.settle() // what they held up goes on
		}
	}
	return nil
}

// moving tells whether anything can happen before the next round.
func (w *cluster) moving() bool {
	for _, c := range []*collector{w.leader, w.follower} {
		if c.stale(w.server) || c.served == nil {
			return true
		}
		for _, wt := range c.watches {
			gone := !wt.kind.served && wt.running
			if wt.pending() || gone {
				return true
			}
		}
	}
	if len(w.tasks) > 0 || len(w.leader.unruled) > 0 || len(w.leader.ready(w.now)) > 0 {
		return true
	}
	for _, k := range w.server.kinds {
		for _, o := range k.objects {
			if o.lingers || o.Deleting && o.has(slow) {
				return true
			}
		}
	}
	return false
}

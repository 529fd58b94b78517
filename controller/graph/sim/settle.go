package sim

import (
	"fmt"
	"slices"
)

// Bounds of settling: rounds of the clock, steps within one, and what a request may cost.
const (
	mostRounds  = 1000
	mostSteps   = 20000
	quietRounds = 130 // twice the longest pause of the graph
)

// settle delivers everything and lets time pass, until nothing more is written for long enough.
func (w *world) settle() error {
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
		if quiet++; w.server.version != version || w.leader.waiting() {
			quiet = 0
		}
		if err := w.tick(); err != nil {
			return err
		}
	}
	for _, check := range []func() error{w.agrees, w.settled, w.idle, w.replays} {
		if err := check(); err != nil {
			return w.tell(w.leader, err, w.busy()...)
		}
	}
	// Each object may ask for a few things: references go, unblock, delete, finalizer; some earn a conflict.
	if most := 20 * (len(w.server.buried) + mostObjects); w.stats["requests"]-requests > most {
		return w.tell(w.leader, fmt.Errorf("%d requests to settle, %d are enough", w.stats["requests"]-requests, most))
	}
	return nil
}

// moving tells whether anything can happen before the next round.
func (w *world) moving() bool {
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
	if len(w.tasks) > 0 || len(w.leader.ready(w.now)) > 0 {
		return true
	}
	return slices.ContainsFunc(w.server.all(), func(o *object) bool { return o.lingers || o.Deleting && o.has(slow) })
}

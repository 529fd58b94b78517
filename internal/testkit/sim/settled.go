package sim

import (
	"fmt"

	"github.com/weir-dev/weir/internal/testkit/script"
)

// settled says what on the server a collector would still have to do something about, or nothing.
// It is the meaning of ownership, written without the graph:
//
//	an object with references lives if one of them is to an owner that is there and not waiting, or if
//	one can never be resolved; in the first case it has no reference to an owner that waits or is absent;
//	no reference is to an owner that is orphaning, and no such owner is left;
//	an owner that waits for its dependents has a blocking one that is stuck for a reason: on a finalizer
//	that no process removes, because it cannot be resolved, or behind another such dependent.
//
// Objects of a kind that may not be listed are not the collector's, and block no owner.
func (w *cluster) settled() error {
	s := w.server
	for _, o := range s.all() {
		if s.kind(o.Kind).forbidden || !s.kind(o.Kind).Collected {
			continue
		}
		var present, waiting, absent, unresolvable int
		for _, r := range o.Owners {
			k := s.typeOf(r)
			owner := s.owner(r, o.Namespace)
			switch {
			case k == nil || k.forbidden || !k.served || k.Namespaced && o.Namespace == "":
				unresolvable++
			case owner == nil:
				absent++
			case w.orphans(owner) && !watched(k):
				present++
			case w.orphans(owner):
				return fmt.Errorf("%s still refers to %s, which is orphaning", o.UID, owner.UID)
			case w.waits(owner) && watched(k):
				waiting++
			default:
				present++
			}
		}
		switch {
		case w.orphans(o):
			return fmt.Errorf("%s still orphans", o.UID)
		case o.Deleting && o.has(ours) && !w.waits(o):
			return fmt.Errorf("%s is still held, and has nothing to wait for", o.UID)
		case w.waits(o) && !w.stuck(o, map[*object]bool{}):
			return fmt.Errorf("%s still waits, and nothing holds it up", o.UID)
		case o.Deleting:
		case len(o.Owners) > 0 && present == 0 && unresolvable == 0:
			return fmt.Errorf("%s is garbage: %d owners absent, %d waiting", o.UID, absent, waiting)
		case present > 0 && waiting+absent > 0:
			return fmt.Errorf("%s still refers to %d waiting owners, and %d absent ones", o.UID, waiting, absent)
		}
	}
	return nil
}

// watched tells whether a collector sees more of the objects of a kind than a lookup shows.
func watched(k *kind) bool { return k.Collected && !k.forbidden }

// stuck tells whether an object that is ending stays for a reason.
func (w *cluster) stuck(o *object, seen map[*object]bool) bool {
	if seen[o] {
		return false // waiting for each other is no reason
	}
	seen[o] = true
	if !o.Deleting {
		for _, r := range o.Owners {
			if k := w.server.typeOf(r); k == nil || k.forbidden || !k.served || k.Namespaced && o.Namespace == "" {
				return true
			}
		}
		return false
	}
	if o.lingers {
		return true
	}
	for _, f := range o.Finalizers {
		if f != foreground && (f != ours || !watched(w.server.kind(o.Kind))) {
			return true
		}
	}
	for _, d := range w.server.all() {
		if !watched(w.server.kind(d.Kind)) {
			continue
		}
		for _, r := range d.Owners {
			if blocking(r) && w.server.owner(r, d.Namespace) == o && w.stuck(d, seen) {
				return true
			}
		}
	}
	return false
}

// idle tells what the leader would still do about an object that is not in its queue: a decision
// that changed and was not told.
func (w *cluster) idle() error {
	for _, uid := range script.UIDs(w.leader.graph) {
		if a := w.leader.graph.Decide(uid); a.Request() && w.leader.queue[uid] == nil {
			return fmt.Errorf("%s is not queued, and there is something to do about it: %s", uid, a)
		}
	}
	return nil
}

// agrees tells whether the graphs show what the server has.
func (w *cluster) agrees() error {
	for _, c := range []*collector{w.leader, w.follower} {
		n := 0
		for _, o := range w.server.all() {
			if !watched(w.server.kind(o.Kind)) {
				continue
			}
			n++
			if !c.graph.Shows(&o.Object) {
				return fmt.Errorf("%s does not show %s as it is", c.name, o.UID)
			}
		}
		if got := c.graph.Stats().Objects; got != n {
			return fmt.Errorf("%s has %d objects, the server %d", c.name, got, n)
		}
		if err := c.graph.Check(); err != nil {
			return err
		}
	}
	return nil
}

// replays tells whether the script that a failure would print does what happened: a report that
// does not reproduce is none.
func (w *cluster) replays() error {
	r := script.New()
	for _, line := range w.leader.script(w.leader.seen()...) {
		if _, err := r.Run(line); err != nil {
			return fmt.Errorf("replay %q: %w", line, err)
		}
	}
	if got, want := script.Dump(r.Graph), script.Dump(w.leader.graph); got != want {
		return fmt.Errorf("the replay has another end:\n%s\nnot\n%s", got, want)
	}
	return nil
}

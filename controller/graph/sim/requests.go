package sim

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/graph"
)

// execute is the moment at which the server carries out a task.
func (w *world) execute(t *task) error {
	t.executed = true
	a := t.action
	if a.Verb == graph.Look {
		w.stats["lookups"]++
		t.answer = w.look(a.Claim)
		return nil
	}
	w.stats["requests"]++
	version := a.Object.ResourceVersion
	if t.version != "" {
		version = t.version
	}
	o, outcome := w.server.target(a.Object, preconditions{a.Object.UID, version})
	if outcome == done && w.refuses() {
		outcome = refused
	}
	t.outcome = outcome
	if outcome != done {
		return nil
	}
	if err := w.allowed(t, o); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	switch a.Verb {
	case graph.Delete:
		w.stats["deletes accepted"]++
		w.server.remove(o, a.Propagation)
	case graph.Release:
		w.stats["releases accepted"]++
		w.server.setOwners(o, a.Owners)
	case graph.Unblock:
		w.stats["unblocks accepted"]++
		w.server.setOwners(o, a.Owners)
	case graph.Unfinalize:
		w.stats["unfinalizes accepted"]++
		w.server.setFinalizers(o, a.Finalizers)
	}
	if w.loses() {
		t.outcome = lost
	}
	return nil
}

// look is a live read of the place that a claim names.
func (w *world) look(c graph.Claim) graph.Answer {
	k := w.server.kind(c.Resource)
	if k.forbidden || !k.served || w.refuses() {
		return graph.Unanswered
	}
	namespace := ""
	if c.Namespaced {
		namespace = c.Namespace
	}
	if o := k.at(namespace, c.Name); o != nil && o.UID == c.UID {
		return graph.Present
	}
	return graph.Absent
}

// respond brings the answer of a task to the collector that sent it, if that still runs.
func (w *world) respond(t *task) error {
	c := t.from
	if c != w.leader {
		return nil
	}
	if t.action.Verb == graph.Look {
		if err := c.apply(graph.Looked{Claim: t.action.Claim, Answer: t.answer, Reason: "refused"}, t.uid, t.label); err != nil {
			return err
		}
		c.finish(t.uid, w.now, false)
		return nil
	}
	switch t.outcome {
	case done:
		c.quietly(graph.Accepted{Action: t.action}, t.uid, t.label)
		c.finish(t.uid, w.now, false)
	case conflict:
		if again := w.sameButNewer(t); again != nil {
			w.tasks = append(w.tasks, again)
			return nil
		}
		c.finish(t.uid, w.now, true)
	default:
		c.finish(t.uid, w.now, true)
	}
	return nil
}

// sameButNewer is the second try of a request whose only fault was an old resourceVersion: the object as
// it is now carries the same decision.
func (w *world) sameButNewer(t *task) *task {
	if t.tries == 2 {
		return nil
	}
	live, outcome := w.server.target(t.action.Object, preconditions{uid: t.action.Object.UID})
	if outcome != done || !t.from.graph.Still(t.action, &live.Object) {
		return nil
	}
	again := *t
	again.executed, again.version = false, live.ResourceVersion
	again.orphaning = maps.Clone(t.from.orphaning)
	again.tries++
	return &again
}

// allowed is the safety of one write, on what the server has now.
func (w *world) allowed(t *task, o *object) error {
	switch t.action.Verb {
	case graph.Delete:
		return w.mayDelete(t, o)
	case graph.Release:
		return w.mayRelease(t, o)
	case graph.Unblock:
		return w.mayUnblock(t, o)
	case graph.Unfinalize:
		if f := t.action.Finalizer; f != orphan && f != foreground {
			return fmt.Errorf("%s is nobody's but its owner's", f)
		}
		if !o.Deleting || len(t.action.Finalizers) != len(o.Finalizers)-1 {
			return fmt.Errorf("finalizers %v of %v left", t.action.Finalizers, o.Finalizers)
		}
	}
	return nil
}

func (w *world) mayDelete(t *task, o *object) error {
	if len(o.Owners) == 0 {
		return fmt.Errorf("%s has no owners", o.UID)
	}
	if o.Deleting {
		return fmt.Errorf("%s is being deleted already", o.UID)
	}
	for _, r := range o.Owners {
		k := w.server.typeOf(r)
		if k == nil {
			return fmt.Errorf("owner %s is of a kind that never was", r.UID)
		}
		if k.forbidden {
			return fmt.Errorf("owner %s is of a kind that cannot be read", r.UID)
		}
		if k.Namespaced && o.Namespace == "" {
			return fmt.Errorf("owner %s is in no namespace", r.UID)
		}
		owner := w.server.owner(r, o.Namespace)
		if owner != nil && !owner.wasForeground {
			return fmt.Errorf("owner %s is there", r.UID)
		}
		if owner == nil && t.orphaning[r.UID] && meant(w.server.buried[r.UID], k, r, o.Namespace) != nil {
			return fmt.Errorf("owner %s was orphaning when it was last seen", r.UID)
		}
	}
	return nil
}

func (w *world) mayRelease(t *task, o *object) error {
	stay := map[string]int{}
	for _, r := range t.action.Owners {
		stay[r.String()]++
	}
	removed := 0
	for _, r := range o.Owners {
		if stay[r.String()]--; stay[r.String()] >= 0 {
			continue
		}
		removed++
		if owner := w.server.owner(r, o.Namespace); owner != nil && !owner.wasForeground && !owner.wasOrphaning {
			return fmt.Errorf("owner %s is there", r.UID)
		}
	}
	if removed == 0 || removed+len(t.action.Owners) != len(o.Owners) {
		return fmt.Errorf("%d of %d references removed, %d left", removed, len(o.Owners), len(t.action.Owners))
	}
	return nil
}

func (w *world) mayUnblock(t *task, o *object) error {
	if len(t.action.Owners) != len(o.Owners) {
		return fmt.Errorf("%d references become %d", len(o.Owners), len(t.action.Owners))
	}
	changed := 0
	for i, r := range o.Owners {
		after := t.action.Owners[i]
		if r.String() == after.String() {
			continue
		}
		changed++
		unblocked := r
		unblocked.BlockOwnerDeletion = new(bool)
		if after.String() != unblocked.String() {
			return fmt.Errorf("reference %s becomes %s", &r, &after)
		}
		owner := w.server.owner(r, o.Namespace)
		if owner != nil && owner.UID != o.UID && !owner.wasForeground {
			return fmt.Errorf("owner %s does not wait", r.UID)
		}
	}
	if changed == 0 {
		return fmt.Errorf("nothing was blocking")
	}
	return nil
}

// blocking tells whether a reference holds up its owner.
func blocking(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}

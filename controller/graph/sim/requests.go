package sim

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// task is one request on its way: sent, carried out at some later time, answered later still.
type task struct {
	from   *collector
	uid    types.UID
	label  string
	action graph.Action
	// orphaning is what the collector had seen when it decided
	orphaning map[types.UID]bool
	// retried: the server said conflict, and the object read then was as the graph has it but newer
	version string
	tries   int

	executed bool
	outcome  outcome
	answer   graph.Answer // of a lookup
}

func (t *task) String() string {
	return fmt.Sprintf("%s: %s of %s (%s)", t.from.name, t.action.Verb, t.uid, cmp.Or(t.action.Why, "no reason"))
}

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

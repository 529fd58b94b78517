package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// unfollowed are the kinds of which it knew that they could hide objects, when it decided, and
	// told is how much of the log of the others it had seen.
	unfollowed map[schema.GroupResource]bool
	told       map[schema.GroupResource]int
	ruled      metav1.DeletionPropagation // by policies, about the object
	// history is how often the server's had gone back by then
	history uint32
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
func (w *cluster) execute(t *task) error {
	t.executed = true
	a := t.action
	if a.Verb == graph.Lookup {
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
	if outcome == done && (w.refuses() || w.chaos && w.server.kind(o.Kind).sick && w.chance(70)) {
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
		before := o.Owners
		w.server.setOwners(o, a.Owners)
		w.server.tookOff(o, before, func(uid types.UID) bool { return w.unheard(t, uid) })
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

// unheard tells whether an object is gone, and the collector had not been told so when it decided.
func (w *cluster) unheard(t *task, uid types.UID) bool {
	o := w.server.buried[uid]
	if o == nil {
		return false
	}
	told := slices.ContainsFunc(w.server.kind(o.Kind).log[:t.told[o.Kind]], func(c change) bool { return c.gone && c.object.UID == uid })
	return !told || t.from.deaf[uid]
}

// look is a live read of the place that a claim names.
func (w *cluster) look(c graph.Claim) graph.Answer {
	k := w.server.kind(c.Resource)
	switch {
	case k.forbidden:
		return graph.Denied
	case !k.served || w.refuses():
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
func (w *cluster) respond(t *task) error {
	c := t.from
	if !slices.Contains(w.working(), c) {
		return nil
	}
	if t.action.Verb == graph.Lookup {
		if err := c.apply(graph.LookupAnswered{Claim: t.action.Claim, Answer: t.answer, Reason: "refused"}, t.uid, t.label); err != nil {
			return err
		}
		c.finish(t.uid, w.now, false)
		return nil
	}
	switch t.outcome {
	case done:
		c.quietly(graph.Accepted{Action: t.action}, t.uid, t.label)
		if c.brake != nil && t.action.Verb == graph.Delete && t.action.Inferred.Conclusion != graph.Asked {
			c.brake.Deleted(t.action)
		}
		c.finish(t.uid, w.now, false)
	case conflict:
		if again := w.sameButNewer(t); again != nil {
			w.tasks = append(w.tasks, again)
			return nil
		}
		if err := w.verify(c, t); err != nil {
			return err
		}
		c.finish(t.uid, w.now, true)
	default:
		if err := w.verify(c, t); err != nil {
			return err
		}
		c.finish(t.uid, w.now, true)
	}
	return nil
}

// verify is the edge's second look at an object that it cannot find: the watch may never tell of
// its end.
func (w *cluster) verify(c *collector, t *task) error {
	ref := t.action.Object
	if t.outcome != notFound && t.outcome != conflict || c.queue[t.uid].tries == 0 {
		return nil
	}
	if k := w.server.kind(ref.Kind); !k.served || k.forbidden || k.objects[ref.UID] != nil {
		return nil
	}
	w.stats["ghosts found"]++
	return c.apply(graph.NotFound{Kind: ref.Kind, UID: ref.UID, History: t.history}, t.uid, t.label)
}

// sameButNewer is the second try of a request whose only fault was an old resourceVersion: the
// object as it is now carries the same decision.
func (w *cluster) sameButNewer(t *task) *task {
	if t.tries == 2 {
		return nil
	}
	live, outcome := w.server.target(t.action.Object, preconditions{uid: t.action.Object.UID})
	if outcome != done || !t.from.graph.Still(t.action, &live.Object) {
		return nil
	}
	again := *t
	again.executed, again.version = false, live.ResourceVersion
	again.orphaning, again.unfollowed, again.told = maps.Clone(t.from.orphaning), t.from.unfollowed(), t.from.told()
	again.ruled = t.from.ruling(t.uid)
	again.tries++
	return &again
}

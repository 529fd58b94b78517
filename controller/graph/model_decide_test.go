package graph_test

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// class is what a reference means, as in the table of the package comment.
func (m *model) class(r metav1.OwnerReference, namespace string) string {
	w := wordsOf(r, namespace)
	c := m.claimOf(w)
	o := m.meant(w)
	switch {
	case o != nil && o.orphaning():
		return "O"
	case o != nil && o.foreground():
		return "W"
	case o != nil:
		return "P"
	case c.look == "absent" && c.orphaned:
		return "O"
	case c.look == "absent":
		return "A"
	case m.unresolvable(c) != graph.Resolvable:
		return "N"
	case c.look == "present":
		return "P"
	case c.look == "now":
		return "asked"
	}
	return "U"
}

func (m *model) unresolvable(c mClaim) graph.Unresolvable {
	t := m.typeOf(c.words)
	switch {
	case !t.served:
		return graph.UnservedKind
	case t.ambiguous:
		return graph.AmbiguousKind
	case c.namespace == "" && m.kind(t.resource).Namespaced:
		return graph.Misplaced
	case c.look == "failed", c.look == "denied":
		return graph.Unreadable
	}
	return graph.Resolvable
}

// dependents counts the references that mean an object, and those among them that block it.
func (m *model) dependents(o *mObject) (all, blocking int) {
	for _, d := range m.objects {
		for _, r := range d.Owners {
			if m.meant(wordsOf(r, d.Namespace)) != o {
				continue
			}
			all++
			if blocks(r) {
				blocking++
			}
		}
	}
	return all, blocking
}

func blocks(r metav1.OwnerReference) bool {
	return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
}

// blocked are the objects that can be reached over blocking references to waiting owners, in at
// least one step; start counts as waiting.
func (m *model) blocked(from, start *mObject) (reached []*mObject) {
	todo := []*mObject{from}
	for len(todo) > 0 {
		o := todo[0]
		todo = todo[1:]
		for _, r := range o.Owners {
			owner := m.meant(wordsOf(r, o.Namespace))
			if owner == nil || !blocks(r) || !owner.foreground() && owner != start || slices.Contains(reached, owner) {
				continue
			}
			reached = append(reached, owner)
			todo = append(todo, owner)
		}
	}
	return reached
}

// cycle are the objects that wait for each other if start waits: reached from it, and reaching it.
func (m *model) cycle(start *mObject) (members []*mObject) {
	for _, o := range m.blocked(start, start) {
		if slices.Contains(m.blocked(o, start), start) {
			members = append(members, o)
		}
	}
	return members
}

func (m *model) leads(o *mObject, members []*mObject) bool {
	place := func(o *mObject) int {
		return slices.IndexFunc(m.kinds, func(k mKind) bool { return k.GroupResource() == o.Kind })
	}
	for _, other := range members {
		if other.UID < o.UID || other.UID == o.UID && place(other) < place(o) {
			return false
		}
	}
	return true
}

// incomplete tells whether a kind that could have dependents of o is in one of the states, or
// behind.
func (m *model) incomplete(o *mObject, behind bool, states ...graph.ListState) bool {
	for _, k := range m.kinds {
		missing := slices.Contains(states, k.state) || behind && k.state == graph.Synced && !k.level
		if k.served && k.Collected && missing && (k.Namespaced || !m.kind(o.Kind).Namespaced) {
			return true
		}
	}
	return false
}

// away tells whether objects that referred to o are of a kind that is not served.
func (m *model) away(o *mObject) bool {
	return slices.ContainsFunc(o.hidden, func(gr schema.GroupResource) bool {
		k := m.kind(gr)
		return !k.served || !k.Collected
	})
}

// decide is the decision about a uid: of its objects, the newest that has something to ask for.
func (m *model) decide(uid types.UID) (a graph.Action) {
	for i := len(m.objects) - 1; i >= 0; i-- {
		if o := &m.objects[i]; o.UID == uid {
			if a = m.decideObject(o); a.Request() {
				return a
			}
		}
	}
	return a
}

func (m *model) decideObject(o *mObject) graph.Action {
	a := m.row(o)
	if m.relisting && a.Verb > graph.Lookup {
		return graph.Action{Verb: graph.Wait}
	}
	return a
}

func (m *model) row(o *mObject) graph.Action {
	n := map[string]int{}
	for _, r := range o.Owners {
		n[m.class(r, o.Namespace)]++
	}
	dependents, blocking := m.dependents(o)
	a := graph.Action{Object: graph.Ref{
		Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}}
	release := func(goes ...string) graph.Action {
		a.Verb = graph.Release
		for _, r := range o.Owners {
			if !slices.Contains(goes, m.class(r, o.Namespace)) {
				a.Owners = append(a.Owners, r)
			}
		}
		return a
	}
	unblock := func(members []*mObject) graph.Action {
		a.Verb = graph.Unblock
		for _, r := range o.Owners {
			if owner := m.meant(wordsOf(r, o.Namespace)); blocks(r) && slices.Contains(members, owner) {
				r.BlockOwnerDeletion = new(bool)
			}
			a.Owners = append(a.Owners, r)
		}
		return a
	}
	unfinalize := func(goes ...string) graph.Action {
		if o.ruled != nil {
			goes = append(goes, o.ruled.Finalizer)
		}
		a.Verb, a.Finalizers = graph.Unfinalize, slices.Clone(o.Finalizers)
		for _, f := range slices.Backward(goes) {
			if slices.Contains(o.Finalizers, f) {
				a.Finalizer = f
			}
			a.Finalizers = slices.DeleteFunc(a.Finalizers, func(has string) bool { return has == f })
		}
		return a
	}
	wait := graph.Action{Verb: graph.Wait}
	keep := graph.Action{Verb: graph.Keep}

	switch {
	case o.accepted:
		return wait
	case n["O"] > 0 && o.Deleting:
		return release("O")
	case n["O"] > 0 && n["U"] > 0:
		return m.look(o, a)
	case n["O"] > 0 && n["asked"] > 0:
		return wait
	case n["O"] > 0 && slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool {
		c := m.claimOf(wordsOf(r, o.Namespace))
		return m.class(r, o.Namespace) == "N" && c.look == "failed" && m.unresolvable(c) == graph.Unreadable
	}):
		wait.Unresolvable = graph.Unreadable
		return wait
	case n["O"] > 0:
		return release("O", "A", "W")
	case o.orphaning() && dependents > 0:
		return wait
	case o.orphaning() && (m.away(o) || m.incomplete(o, true, graph.Listing, graph.Slow, graph.Failing)):
		return wait
	case o.orphaning():
		return unfinalize(metav1.FinalizerOrphanDependents)
	case o.foreground() && blocking > 0:
		if members := m.cycle(o); len(members) > 0 && m.leads(o, members) {
			return unblock(members)
		}
		return wait
	case o.foreground() && m.incomplete(o, false, graph.Listing, graph.Slow):
		return wait
	case o.foreground():
		return unfinalize(metav1.FinalizerDeleteDependents)
	case o.ruled != nil:
		return unfinalize()
	case o.Deleting, len(o.Owners) == 0:
		return keep
	case n["P"] > 0 && n["A"]+n["W"] > 0:
		return release("A", "W")
	case n["P"] > 0 && n["U"] > 0:
		a.LowPriority = true
		return m.look(o, a)
	case n["P"] > 0:
		return keep
	case n["U"] > 0:
		return m.look(o, a)
	case n["asked"] > 0:
		return wait
	case n["N"] > 0:
		for _, r := range o.Owners {
			if m.class(r, o.Namespace) == "N" {
				keep.Unresolvable = m.unresolvable(m.claimOf(wordsOf(r, o.Namespace)))
				return keep
			}
		}
	case o.guarded:
		a.Kept = "a policy protects it: the policy's words"
		return release("A", "W")
	case n["W"] > 0 && dependents > 0:
		if members := m.cycle(o); len(members) > 0 {
			return unblock(members)
		}
		a.Verb, a.Propagation = graph.Delete, metav1.DeletePropagationForeground
		a.Inferred = m.inference(o)
		return a
	}
	a.Verb, a.Propagation = graph.Delete, metav1.DeletePropagationBackground
	a.Inferred = m.inference(o)
	if slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents) {
		a.Propagation = metav1.DeletePropagationForeground
	}
	if slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents) {
		a.Propagation = metav1.DeletePropagationOrphan
	}
	return a
}

// awaiting are the uids of the owners that wait for the first object with a uid that is deleted,
// each once.
func (m *model) awaiting(uid types.UID) (uids []types.UID) {
	a := m.decide(uid)
	if o := m.object(a.Object.Kind, uid); o != nil {
		for _, r := range o.Owners {
			if m.class(r, o.Namespace) == "W" {
				uids = append(uids, r.UID)
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// inference is what the first reference says that no user has made garbage; one that is not
// inherited comes first.
func (m *model) inference(o *mObject) (found graph.Inference) {
	for _, r := range o.Owners {
		w := wordsOf(r, o.Namespace)
		var of graph.Inference
		switch c := m.claimOf(w); m.class(r, o.Namespace) {
		case "W":
			of = m.meant(w).why
		case "A":
			of = c.inferred
		default:
			continue
		}
		if of == (graph.Inference{}) && slices.Contains(o.written, w) {
			of = inferred(graph.ReferenceEdited, m.typeOf(w).resource)
		}
		if of != (graph.Inference{}) && !of.Inherited {
			return of
		}
		found = cmp.Or(found, of)
	}
	return found
}

// look asks for the first unknown owner.
func (m *model) look(o *mObject, a graph.Action) graph.Action {
	a.Verb = graph.Lookup
	for _, r := range o.Owners {
		if m.class(r, o.Namespace) != "U" {
			continue
		}
		k := m.kind(m.typeOf(wordsOf(r, o.Namespace)).resource)
		a.Claim = graph.Claim{
			APIVersion: r.APIVersion, Kind: r.Kind, Namespace: o.Namespace, Name: r.Name, UID: r.UID,
			Resource: k.GroupResource(), Namespaced: k.Namespaced, Lists: k.lists, History: m.history,
		}
		break
	}
	return a
}

package differential

import "slices"

// A Case is what is known of a step after which the sides differ.
type Case struct {
	Operation Operation
	// Before is what Weir's side was before the step. The reference's was the same, unless what
	// differed is being undone.
	Before, BeforeReference State
	Reference, Weir         State
	// Orphaned are the objects that were ever deleted with orphan.
	Orphaned map[string]bool
	// Namespaces are those of the objects, none for cluster-scoped ones.
	Namespaces map[string]string
}

// written are the references that an object had before, or was given by the operation; some more
// than once.
func (c Case) written(name string) []Reference {
	refs := slices.Concat(c.Before[name].Owners, c.BeforeReference[name].Owners)
	if c.Operation.Object == name {
		refs = append(refs, c.Operation.Owners...)
	}
	return refs
}

// unresolvable tells whether no lookup can say whether the owner is there.
func (c Case) unresolvable(of string, r Reference) bool {
	return r.Flaw == Unserved || KindOf(of).Cluster && !KindOf(r.Owner).Cluster
}

// answers tells whether the owner that a reference names is there.
func (c Case) answers(of string, r Reference, in State) bool {
	if r.Flaw != Sound && r.Flaw != OtherVersion || c.unresolvable(of, r) {
		return false
	}
	return has(in, r.Owner) && (KindOf(r.Owner).Cluster || c.Namespaces[of] == c.Namespaces[r.Owner])
}

// dead tells whether a reference can hold nothing, whichever side one asks.
func (c Case) dead(of string, r Reference) bool {
	return !c.unresolvable(of, r) && !c.answers(of, r, c.Reference) && !c.answers(of, r, c.Weir)
}

// deadTakenOff tells whether all that differs is that Weir took off references that hold nothing:
// dead ones, and those to owners that wait for it, or orphan.
func (c Case) deadTakenOff(d Difference) bool {
	if d.Reference == nil || d.Weir == nil || !d.ownersOnly() || len(minus(d.Weir.Owners, d.Reference.Owners)) > 0 {
		return false
	}
	more := minus(d.Reference.Owners, d.Weir.Owners)
	return len(more) > 0 && !slices.ContainsFunc(more, func(r Reference) bool {
		owner, there := c.Reference[r.Owner]
		return !c.dead(d.Name, r) && !c.Orphaned[r.Owner] && (!there || !owner.Terminating)
	})
}

func has(s State, name string) bool {
	_, ok := s[name]
	return ok
}

// takenOff are the references that an object had before, or was given, and has no more under Weir.
func (c Case) takenOff(d Difference) []Reference {
	return slices.DeleteFunc(c.written(d.Name), func(r Reference) bool { return slices.Contains(d.Weir.Owners, r) })
}

// minus are the references of a that are not in b, each as often as it is more there.
func minus(a, b []Reference) []Reference {
	left := slices.Clone(b)
	return slices.DeleteFunc(slices.Clone(a), func(r Reference) bool {
		i := slices.Index(left, r)
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
		return i >= 0
	})
}

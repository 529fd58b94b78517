package differential

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Cause is why Weir parts from the reference on purpose. It is looked for in the states
// themselves.
type Cause struct {
	// Name is how it is counted; DESIGN.md has it among what is different on purpose.
	Name string
	// explains tells whether it makes this difference, and all of it.
	explains func(Case, Difference) bool
}

// These two delete what the reference keeps: shadow mode's gate opens over them if they are
// accepted by name.
const (
	judgedWhenWritten = "references are judged whenever they change"
	judgedMeanwhile   = "dependents written during foreground deletion are judged"
)

// Causes are looked for in this order.
var Causes = []Cause{
	{"references go one by one, not by uid", oneByOne},
	{"an unresolvable reference keeps no dead one", besideUnresolvable},
	{judgedWhenWritten, knownUIDs},
	{judgedMeanwhile, duringForeground},
	{"an unsound reference blocks no owner", unsoundBlocks},
	{"a foreground owner that nothing blocks goes", nothingBlocks},
	{"an object does not block itself", ownBlock},
	{"an unsound reference is not released", unsoundReleased},
	{"what is in no cycle is not unblocked", noCycle},
	{"a cycle of owners that wait for each other is broken", brokenCycle},
	{"dependents written after orphaning are released", afterOrphaning},
}

// consequence is what follows from another difference.
const consequence = "follows from another difference"

// explain finds a cause for each difference; none for one is none for all.
func (c Case) explain(differ []Difference) (causes []string, ok bool) {
	causes = make([]string, len(differ))
	for i, d := range differ {
		for _, cause := range Causes {
			if cause.explains(c, d) {
				causes[i] = cause.Name
				break
			}
		}
	}
	for range differ {
		for i, d := range differ {
			for j, other := range differ {
				if causes[i] == "" && causes[j] != "" && c.follows(d, other) {
					causes[i] = consequence
				}
			}
		}
	}
	return causes, !slices.Contains(causes, "")
}

// follows tells whether an object differs because another one, which lives on one side only, is its
// owner, or blocks it; or because its owner, which was freed under the reference, is not deleted
// foreground there.
func (c Case) follows(d, other Difference) bool {
	if d.terminating() < 0 && other.Reference != nil && other.Reference.Terminating && len(c.freed(other.Name)) > 0 {
		return slices.ContainsFunc(c.written(d.Name), func(r Reference) bool { return r.Owner == other.Name })
	}
	if d.held() && other.Reference != nil {
		blocks := func(o *Object) bool {
			return o != nil && slices.ContainsFunc(o.Owners, func(r Reference) bool { return r.Owner == d.Name && r.Block == Blocking })
		}
		if blocks(other.Reference) && !blocks(other.Weir) {
			return true
		}
	}
	if (other.Reference == nil) == (other.Weir == nil) && other.terminating() == 0 && !other.held() {
		return false
	}
	owned := slices.ContainsFunc(c.written(d.Name), func(r Reference) bool { return r.Owner == other.Name })
	blocked := slices.ContainsFunc(c.written(other.Name), func(r Reference) bool { return r.Owner == d.Name && r.Block == Blocking })
	return owned || blocked && d.held()
}

// oneByOne: the reference removes every reference with the uid of one that is dead; Weir only that
// one.
func oneByOne(c Case, d Difference) bool {
	if d.Reference == nil || d.Weir == nil || !d.ownersOnly() || len(minus(d.Reference.Owners, d.Weir.Owners)) > 0 {
		return false
	}
	taken := c.takenOff(d)
	return !slices.ContainsFunc(minus(d.Weir.Owners, d.Reference.Owners), func(kept Reference) bool {
		return !slices.ContainsFunc(taken, func(r Reference) bool { return r.Owner == kept.Owner })
	})
}

// besideUnresolvable: one reference that cannot be resolved keeps its object on both sides, but in
// the reference it also keeps what else the object refers to.
func besideUnresolvable(c Case, d Difference) bool {
	return c.deadTakenOff(d) && slices.ContainsFunc(d.Weir.Owners, func(r Reference) bool { return c.unresolvable(d.Name, r) })
}

// knownUIDs: the reference looks at an object again when its references get a new uid that is not
// there, or is not what the reference says. When they get one that is, or one is taken off, or
// another kind or name is put to a uid, it leaves the object as it is until something else happens
// to it.
func knownUIDs(c Case, d Difference) bool {
	if c.Operation.Object != d.Name || d.Reference == nil || slices.ContainsFunc(d.Reference.Owners, func(r Reference) bool {
		known := slices.ContainsFunc(c.Before[d.Name].Owners, func(old Reference) bool { return old.Owner == r.Owner })
		return !known && (!c.answers(d.Name, r, c.Reference) || waits(c.Reference.at(r.Owner)))
	}) {
		return false
	}
	if c.deadTakenOff(d) {
		return true
	}
	return d.terminating() < 0 && len(d.Reference.Owners) > 0 &&
		!slices.ContainsFunc(d.Reference.Owners, func(r Reference) bool { return !c.dead(d.Name, r) })
}

// duringForeground: the reference looks at the dependents that an owner has when its foreground
// deletion begins. One that is written later it leaves as it is until the owner is looked at again,
// or is gone.
func duringForeground(c Case, d Difference) bool {
	if c.Operation.Object != d.Name || d.Reference == nil {
		return false
	}
	waits := func(r Reference) bool {
		owner := c.Before[r.Owner]
		return owner.Terminating && slices.Contains(owner.Finalizers, metav1.FinalizerDeleteDependents)
	}
	if c.deadTakenOff(d) {
		return slices.ContainsFunc(minus(d.Reference.Owners, d.Weir.Owners), waits)
	}
	return d.terminating() < 0 && slices.ContainsFunc(d.Reference.Owners, waits) &&
		!slices.ContainsFunc(d.Reference.Owners, func(r Reference) bool { return !waits(r) && !c.dead(d.Name, r) })
}

// unsoundBlocks: in the reference an object that names another by its uid blocks its foreground
// deletion, even if it is no owner by name, kind, version or namespace, and stays for that reason.
func unsoundBlocks(c Case, d Difference) bool {
	if !d.held() {
		return false
	}
	for name, o := range c.Reference {
		for _, r := range o.Owners {
			if r.Owner == d.Name && r.Block == Blocking && !c.answers(name, r, c.Reference) {
				return true
			}
		}
	}
	return false
}

// nothingBlocks: the reference looks at an owner again when a blocking reference to it goes. Where
// an object had two to one uid, or was taken for part of a cycle, it may miss that, and the owner
// stays for good.
func nothingBlocks(c Case, d Difference) bool {
	if !d.held() {
		return false
	}
	for _, o := range c.Reference {
		if slices.ContainsFunc(o.Owners, func(r Reference) bool { return r.Owner == d.Name && r.Block == Blocking }) {
			return false
		}
	}
	return true
}

// ownBlock: an object that refers to itself waits for itself in the reference. Here it is a cycle
// as any other, and that reference blocks no more.
func ownBlock(_ Case, d Difference) bool {
	own := Reference{Owner: d.Name, Block: Blocking}
	if d.held() {
		return slices.Contains(d.Reference.Owners, own)
	}
	return d.Reference != nil && d.Weir != nil && d.ownersOnly() && d.Weir.Terminating &&
		slices.Equal(minus(d.Reference.Owners, d.Weir.Owners), []Reference{own}) &&
		slices.Equal(minus(d.Weir.Owners, d.Reference.Owners), []Reference{{Owner: d.Name, Block: Free}})
}

// unsoundReleased: in the reference orphaning removes every reference with the owner's uid, and
// collects what has only dead ones left then. Weir leaves what cannot be resolved, and its object.
func unsoundReleased(c Case, d Difference) bool {
	if d.Weir == nil {
		return false
	}
	unsound := func(r Reference) bool {
		owner, there := c.Reference[r.Owner]
		return c.Orphaned[r.Owner] && (!there || owner.Terminating) && !c.answers(d.Name, r, c.Before)
	}
	if d.Reference != nil && d.ownersOnly() {
		released := minus(d.Weir.Owners, d.Reference.Owners)
		return len(released) > 0 && !slices.ContainsFunc(released, func(r Reference) bool { return !unsound(r) }) &&
			len(minus(d.Reference.Owners, d.Weir.Owners)) == 0
	}
	return d.terminating() > 0 && slices.ContainsFunc(d.Weir.Owners, unsound) &&
		!slices.ContainsFunc(d.Weir.Owners, func(r Reference) bool { return !unsound(r) && !c.dead(d.Name, r) })
}

// afterOrphaning: Weir remembers that an owner let its dependents go, and releases those that are
// seen later.
func afterOrphaning(c Case, d Difference) bool {
	if d.Weir == nil || d.Reference != nil && !d.ownersOnly() && d.terminating() <= 0 {
		return false
	}
	return slices.ContainsFunc(c.takenOff(d), func(r Reference) bool {
		return c.Orphaned[r.Owner] && !has(c.Weir, r.Owner)
	})
}

// noCycle: the reference takes blockOwnerDeletion off an object that waits for a dependent being
// deleted foreground, cycle or not, whether it was set or left out. Its owner may be gone for that
// before the object is deleted, or wait no more.
func noCycle(c Case, d Difference) bool {
	if d.heldByWeir() && c.unblocked(d.Name) {
		return true
	}
	if d.Reference == nil {
		return false
	}
	freed := c.freed(d.Name)
	if d.Weir == nil || !d.ownersOnly() {
		return len(freed) > 0 && d.terminating() < 0
	}
	more, less := minus(d.Reference.Owners, d.Weir.Owners), minus(d.Weir.Owners, d.Reference.Owners)
	return len(more) > 0 && len(more) == len(less) && len(minus(more, freed)) == 0
}

// brokenCycle: in the reference owners that are all being deleted foreground, and that block each
// other in a circle, wait for ever. Weir has one of them block no more, and the next goes on.
func brokenCycle(c Case, d Difference) bool {
	if d.held() {
		return c.inCycle(d.Name, d.Name)
	}
	if d.Reference == nil || d.Weir == nil || !d.ownersOnly() {
		return false
	}
	more, less := minus(d.Reference.Owners, d.Weir.Owners), minus(d.Weir.Owners, d.Reference.Owners)
	return len(more) > 0 && len(more) == len(less) && !slices.ContainsFunc(more, func(r Reference) bool {
		return r.Block != Blocking || !slices.Contains(less, Reference{r.Owner, r.Flaw, Free}) || !c.inCycle(r.Owner, d.Name)
	})
}

// inCycle tells whether a way of blocking references leads from one object to another under the
// reference, over objects that all wait.
func (c Case) inCycle(from, to string) bool {
	if !waits(c.Reference.at(to)) {
		return false
	}
	met := map[string]bool{}
	var leads func(name string) bool
	leads = func(name string) bool {
		o := c.Reference.at(name)
		if met[name] || !waits(o) {
			return false
		}
		met[name] = true
		return slices.ContainsFunc(o.Owners, func(r Reference) bool {
			return r.Block == Blocking && c.answers(name, r, c.Reference) && (r.Owner == to || leads(r.Owner))
		})
	}
	return leads(from)
}

// freed are the references of an object that block no more under the reference, though that was not
// asked for.
func (c Case) freed(name string) []Reference {
	return slices.DeleteFunc(minus(c.Reference[name].Owners, c.written(name)), func(r Reference) bool {
		return r.Block != Free || !slices.ContainsFunc(c.written(name), func(was Reference) bool {
			return was.Owner == r.Owner && was.Flaw == r.Flaw
		})
	})
}

// unblocked tells whether a dependent that blocks the owner under Weir was freed from that under
// the reference.
func (c Case) unblocked(owner string) bool {
	for name, o := range c.Weir {
		for _, r := range o.Owners {
			free := Reference{r.Owner, r.Flaw, Free}
			if r.Owner == owner && r.Block == Blocking && (slices.Contains(c.freed(name), free) || slices.Contains(c.BeforeReference[name].Owners, free)) {
				return true
			}
		}
	}
	return false
}

// terminating is positive if only the reference deletes the object, or deleted it, and negative if
// only Weir.
func (d Difference) terminating() int {
	n := 0
	if d.Reference == nil || d.Reference.Terminating {
		n++
	}
	if d.Weir == nil || d.Weir.Terminating {
		n--
	}
	return n
}

// held tells whether the object waits for dependents under the reference, and not under Weir.
func (d Difference) held() bool { return waits(d.Reference) && !waits(d.Weir) }

// heldByWeir is the reverse.
func (d Difference) heldByWeir() bool { return waits(d.Weir) && !waits(d.Reference) }

func waits(o *Object) bool {
	return o != nil && o.Terminating && slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents)
}

func (d Difference) ownersOnly() bool {
	return d.Reference.Terminating == d.Weir.Terminating && slices.Equal(d.Reference.Finalizers, d.Weir.Finalizers)
}

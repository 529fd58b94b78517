package insight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// playing plays a deletion: it has the graph decide as in the collector, and carries out at once
// what the graph asks for.
//
// All that can happen in a step happens; what follows from it is the next step. When nothing more
// happens, objects may be left with finalizers that neither the collector nor Weir removes. These
// are noted and removed, which begins the next stage.
type playing struct {
	world   *World
	enforce func(graph.View) Enforcement // nil: nothing is known of policies
	next    []*Item                      // those whose decision may have changed
	items   map[types.UID]*Item
	order   []*Item // in the order in which they were met
	step    int
	stage   int
	held    map[types.UID]*Item
	rv      uint64

	later    []*part                                     // namespaces and definitions that are deleted
	protects func(graph.View) (why, doubt string)        // nil: nothing is known of policies
	waves    func(namespace string) func(graph.View) int // see Deletion

	approved map[types.UID]bool   // objects that no brake holds, because a person has approved their deletion
	draining map[string]bool      // namespaces that are being drained: no brake holds their content
	braked   map[types.UID]braked // the deletions that brakes hold

	decided []graph.Action // a buffer for decisions of the graph
	done    []*Item        // a buffer for the items of the next step
}

// Enforcement is what a policy says about the deletion of an object.
type Enforcement struct {
	Propagation metav1.DeletionPropagation // empty: as requested
	// Keeps reports for which kinds dependents lose their reference to the object instead of being
	// deleted; nil: for none.
	Keeps func(schema.GroupResource) bool
	By    string
	// Limit is how many objects may also be deleted before LimitBy, a policy, holds the deletion;
	// nil: any number.
	Limit   *int
	LimitBy string
	// Unheld is why it is not certain that the deletion is then held; empty if it is.
	Unheld string
	// Archive is the policy by which the object is recorded before it is deleted, with all that is
	// deleted with it; empty if none is.
	Archive string
	// Doubt is why it is not known what policies say; empty if it is.
	Doubt string
}

func newPlaying(w *World, enforce func(graph.View) Enforcement) *playing {
	return &playing{
		world: w, enforce: enforce, rv: 1 << 62,
		items: map[types.UID]*Item{}, held: map[types.UID]*Item{},
		approved: map[types.UID]bool{}, draining: map[string]bool{}, braked: map[types.UID]braked{},
	}
}

// item returns the item of an object. It is made when something about the object may first change.
func (c *playing) item(uid types.UID) *Item {
	i := c.items[uid]
	if i == nil {
		i = &Item{Object: Object{UID: uid}}
		c.items[uid] = i
	}
	return i
}

// meet fills in an item when something first happens to the object, as the object is then.
func (c *playing) meet(i *Item, v *graph.View) {
	if i.Name != "" {
		return
	}
	i.Object, i.Deleting = objectOf(v), v.Deleting
	for _, o := range v.Owners {
		i.owners = append(i.owners, o.UID)
		if o.Controller != nil && *o.Controller && owns(o.Verdict) {
			i.controller = o.UID
		}
	}
	c.order = append(c.order, i)
}

// run carries out decisions until there are none.
func (c *playing) run() {
	for {
		for len(c.next) > 0 {
			now := c.next
			c.next = c.done[:0]
			c.step++
			// All decisions are made before any is carried out: workers do not see yet what others
			// do at the same time.
			c.decided = slices.Grow(c.decided[:0], len(now))
			for _, i := range now {
				c.decided = append(c.decided, c.world.Graph.Decide(i.UID))
			}
			for n, i := range now {
				if i.written == c.step {
					continue // another item's action wrote it in this step: decided again, as after a conflict
				}
				c.do(i, &c.decided[n])
			}
			c.done = now
		}
		// Finalizers are removed once nothing else happens in any namespace or definition that is
		// deleted.
		if !c.advance(false) && !c.removeFinalizers() && !c.advance(true) {
			return
		}
	}
}

// removeFinalizers begins a stage: it removes finalizers that no known controller removes, and lets
// braked deletions go on. It returns false if there is nothing to do.
func (c *playing) removeFinalizers() bool {
	if len(c.held) == 0 {
		return false
	}
	c.stage++
	c.step++
	held := slices.SortedFunc(maps.Values(c.held), func(a, b *Item) int { return cmp.Compare(a.UID, b.UID) })
	clear(c.held)
	for _, i := range held {
		v, ok := c.world.Graph.Find(i.UID)
		if !ok {
			continue
		}
		keep := slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool { return !collectors(f) })
		if b, ok := c.braked[v.UID]; ok {
			delete(c.braked, v.UID)
			c.carryOut(i, &v, keep, b.enforcement, b.propagation)
			continue
		}
		c.write(i, &v, keep)
	}
	return true
}

// collectors reports whether a finalizer is the collector's.
func collectors(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}

// do carries out a decision about an object.
func (c *playing) do(i *Item, d *graph.Action) {
	switch d.Verb {
	case graph.Keep:
		if d.Unresolvable == graph.Resolvable {
			return
		}
	case graph.Wait:
		return
	case graph.Lookup:
		c.apply(graph.LookupStarted{Claim: d.Claim})
		c.apply(c.world.lookup(d.Claim, i.UID))
		c.changed(i)
		return
	}
	found, ok := c.world.Graph.Find(i.UID)
	if !ok {
		return
	}
	v := &found
	c.meet(i, v)
	switch d.Verb {
	case graph.Delete:
		if v.Deleting {
			return
		}
		if c.protects != nil {
			why, doubt := c.protects(*v)
			if why != "" {
				c.apply(graph.Protected{Object: v.Ref, Why: "a policy protects it: " + why})
				return
			}
			i.Doubt = doubt
		}
		if isUndeletable(v) {
			i.happens(Stuck, nobodyMay, c)
			return
		}
		i.Why = d.Why
		if v.Kind == namespaces || v.Kind == definitions {
			c.terminate(i, v, d.Propagation)
			return
		}
		c.delete(i, v, d.Propagation)
	case graph.Release, graph.Unblock:
		if d.Verb == graph.Release && i.Outcome != Deleted {
			i.happens(Released, d.Why, c)
		}
		c.observe(i, v, d.Owners, v.Finalizers)
	case graph.Unfinalize:
		c.write(i, v, d.Finalizers)
	case graph.Keep:
		if !v.Deleting {
			i.happens(Unknown, strings.Join(append([]string{d.Why}, c.world.astray(v)...), "; "), c)
		}
	}
}

// terminate makes a namespace or a definition terminate. It is gone after all that it holds.
func (c *playing) terminate(i *Item, v *graph.View, propagation metav1.DeletionPropagation) {
	i.Outcome, i.Stage = Deleted, c.stage
	if c.enforce != nil && c.step == 1 {
		i.Archive = c.enforce(*v).Archive
	}
	c.later = append(c.later, &part{item: i, view: *v, propagation: propagation})
	v.Deleting = true
	c.observe(i, v, ownersOf(v), v.Finalizers)
}

// happens sets what becomes of an object in this step.
func (i *Item) happens(o Outcome, why string, c *playing) {
	i.Outcome, i.Why, i.Step, i.Stage = o, why, c.step, c.stage
}

// delete does what the API server does with a DELETE (RB 5), and what Weir does by policies.
func (c *playing) delete(i *Item, v *graph.View, propagation metav1.DeletionPropagation) {
	i.Outcome, i.Stage = Deleted, c.stage
	// Weir enforces a propagation by its finalizer, which cannot be added to an object that is
	// being deleted.
	enforced := c.enforce != nil && (!v.Deleting || slices.Contains(v.Finalizers, v1beta1.Finalizer))
	v.Deleting = true
	v.Finalizers = asked(v.Finalizers, propagation)
	if !enforced {
		i.Propagation = propagation
		c.write(i, v, v.Finalizers)
		return
	}
	s := c.enforce(*v)
	if s.By != "" {
		i.Policy, propagation = s.By, cmp.Or(s.Propagation, propagation)
	}
	i.Doubt = cmp.Or(s.Doubt, i.Doubt)
	if c.step == 1 { // it was asked for; what follows is recorded with it
		i.Archive = s.Archive
	}
	if !c.brake(i, v, s, propagation) {
		c.carryOut(i, v, v.Finalizers, s, propagation)
	}
}

// carryOut lets a deletion go on as policies say, and removes Weir's finalizer, which holds the
// object until that is done.
func (c *playing) carryOut(
	i *Item, v *graph.View, finalizers []string, s Enforcement, propagation metav1.DeletionPropagation,
) {
	if s.Keeps != nil {
		c.keep(v, s)
	}
	i.Propagation = propagation
	c.write(i, v, slices.DeleteFunc(asked(finalizers, propagation), func(f string) bool { return f == v1beta1.Finalizer }))
}

// braked is how a held deletion goes on after a person has approved it.
type braked struct {
	enforcement Enforcement
	propagation metav1.DeletionPropagation
}

// brake holds a deletion if more objects would also be deleted than a policy allows, and reports
// whether it does. Nothing follows from a held deletion before a person has approved it.
func (c *playing) brake(i *Item, v *graph.View, s Enforcement, propagation metav1.DeletionPropagation) bool {
	if s.Limit == nil || c.approved[v.UID] || c.draining[v.Namespace] {
		return false
	}
	n := c.world.alsoDeleted(v, s)
	switch {
	case n <= *s.Limit:
		return false
	case s.Unheld != "":
		i.Doubt = cmp.Or(i.Doubt, s.Unheld)
		return false
	}
	i.Brake = fmt.Sprintf("%s would also be deleted, and policy %s allows %d", words.Count(n, "object", "objects"),
		s.LimitBy, *s.Limit)
	i.Propagation = propagation
	c.braked[v.UID] = braked{s, propagation}
	c.write(i, v, append(slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool {
		return collectors(f) || f == v1beta1.Finalizer
	}), v1beta1.Finalizer))
	return true
}

// asked returns the finalizers of an object after a DELETE with a propagation; an empty one leaves
// them.
func asked(finalizers []string, propagation metav1.DeletionPropagation) []string {
	if propagation == "" {
		return finalizers
	}
	out := slices.DeleteFunc(slices.Clone(finalizers), collectors)
	switch propagation {
	case metav1.DeletePropagationForeground:
		out = append(out, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		out = append(out, metav1.FinalizerOrphanDependents)
	}
	return out
}

// keep removes the references to an object from dependents whose kinds a policy keeps.
func (c *playing) keep(v *graph.View, s Enforcement) {
	for _, d := range c.world.Graph.Dependents(v.UID) {
		if !s.Keeps(d.Kind) {
			continue
		}
		var rest []metav1.OwnerReference
		for _, o := range d.Owners {
			if o.UID != v.UID {
				rest = append(rest, o.OwnerReference)
			}
		}
		i := c.item(d.UID)
		c.meet(i, &d)
		if i.Outcome != Deleted {
			i.happens(Released, "policy "+s.By+" keeps dependents of this kind", c)
		}
		i.keepers = append(i.keepers, v.UID)
		c.observe(i, &d, rest, d.Finalizers)
	}
}

// write sets the finalizers of an object. If it has none left and is being deleted, it is gone.
func (c *playing) write(i *Item, v *graph.View, finalizers []string) {
	if v.Deleting && len(finalizers) == 0 {
		i.Outcome, i.Step, i.Stage = Deleted, c.step, c.stage
		c.apply(graph.Gone{Kind: v.Kind, UID: v.UID})
		return
	}
	if foreign := slices.DeleteFunc(slices.Clone(finalizers), collectors); v.Deleting && len(foreign) > 0 {
		i.Outcome, i.Finalizers = Deleted, foreign
		c.held[v.UID] = i
	}
	c.observe(i, v, ownersOf(v), finalizers)
}

func (c *playing) observe(i *Item, v *graph.View, owners []metav1.OwnerReference, finalizers []string) {
	c.rv++
	c.apply(graph.Observed{Object: &graph.Object{
		Kind: v.Kind, UID: v.UID, Namespace: v.Namespace, Name: v.Name, ResourceVersion: strconv.FormatUint(c.rv, 10),
		Owners: owners, Unfollowed: v.Unfollowed, Finalizers: finalizers, Deleting: v.Deleting,
	}})
	i.written = c.step
	c.changed(i)
}

func (c *playing) apply(e graph.Event) {
	for _, uid := range c.world.Graph.Apply(e) {
		c.changed(c.item(uid))
	}
}

// changed notes that the decision about an object may have changed, so it is made again in the next
// step.
func (c *playing) changed(i *Item) {
	if i.fresh != c.step {
		i.fresh = c.step
		c.next = append(c.next, i)
	}
}

func ownersOf(v *graph.View) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, o := range v.Owners {
		out = append(out, o.OwnerReference)
	}
	return out
}

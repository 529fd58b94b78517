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

// playing plays a deletion. The graph decides as it does in the collector; what it asks for is done
// at once.
//
// It goes in steps: all that can happen happens, and what follows from it is the next step. When
// nothing more happens, objects may be left that are held by finalizers which neither the collector
// nor Weir takes off. They are noted, and it goes on as if those came off: that is the next stage.
type playing struct {
	world   *World
	enforce func(graph.View) Enforcement // nil: nothing is known of policies
	next    []*Item                      // whose decision may have changed
	items   []*Item                      // by the handles of their objects, which stay good: nothing comes into the graph meanwhile
	order   []*Item                      // as they were met
	step    int
	stage   int
	held    map[types.UID]*Item
	rv      uint64

	later    []*part                                     // namespaces and definitions that are deleted
	protects func(graph.View) (why, doubt string)        // nil: nothing is known of policies
	waves    func(namespace string) func(graph.View) int // see Deletion

	approved map[types.UID]bool   // objects that no brake holds: a person has decided
	draining map[string]bool      // namespaces that are being drained: no brake holds what is in them
	braked   map[types.UID]braked // what brakes hold, and how it goes on then

	told    []graph.Handle // room for what the graph tells
	decided []graph.Action // room for what it decides
	done    []*Item        // room for the next step's items
	seen    graph.View     // room for the object that something happens to
}

// Enforcement is what a policy says about the deletion of an object.
type Enforcement struct {
	Propagation metav1.DeletionPropagation // empty: as was asked
	// Keeps tells which kinds of dependents lose their reference to the object instead; nil: none.
	Keeps func(schema.GroupResource) bool
	By    string
	// Limit is how many objects may also be deleted before the deletion is held, by the policy
	// LimitBy; nil: any number.
	Limit   *int
	LimitBy string
	// Unheld is why it is not certain that the deletion is held then; empty: it is.
	Unheld string
	// Archive is the policy by which the object is recorded before it goes, with all that goes with
	// it; empty: none has it recorded.
	Archive string
	// Doubt is why it is not known what policies say; empty if it is.
	Doubt string
}

func newPlaying(w *World, enforce func(graph.View) Enforcement) *playing {
	return &playing{world: w, enforce: enforce, items: make([]*Item, w.Graph.MostHandle()+1), held: map[types.UID]*Item{}, rv: 1 << 62,
		approved: map[types.UID]bool{}, draining: map[string]bool{}, braked: map[types.UID]braked{}}
}

// item is what is said about an object; it is made at the first time that something about it may
// change.
func (c *playing) item(at graph.Handle) *Item {
	if c.items[at] == nil {
		c.items[at] = &Item{at: at}
	}
	return c.items[at]
}

// meet fills an item in, when something happens to the object: as it was then.
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

// run carries out all that follows, until nothing does.
func (c *playing) run() {
	for {
		for len(c.next) > 0 {
			now := c.next
			c.next = c.done[:0]
			c.step++
			// All are decided about before anything is done: workers do not see yet what others do
			// at the same time.
			c.decided = slices.Grow(c.decided[:0], len(now))
			for _, i := range now {
				c.decided = append(c.decided, c.world.Graph.DecideAt(i.at))
			}
			for n, i := range now {
				if i.written == c.step {
					continue // by another, at the same time: it is decided about again, as after a conflict
				}
				c.do(i, &c.decided[n])
			}
			c.done = now
		}
		// Finalizers come off once nothing else happens, in whichever of the namespaces and
		// definitions that go.
		if !c.advance(false) && !c.removeFinalizers() && !c.advance(true) {
			return
		}
	}
}

// removeFinalizers takes finalizers off that no controller known here takes off, which begins a
// stage.
func (c *playing) removeFinalizers() bool {
	if len(c.held) == 0 {
		return false
	}
	c.stage++
	c.step++
	held := slices.SortedFunc(maps.Values(c.held), func(a, b *Item) int { return cmp.Compare(a.UID, b.UID) })
	clear(c.held)
	for _, i := range held {
		v, ok := c.world.Graph.FindAt(i.at)
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

// collectors tells whether a finalizer is the collector's.
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
		c.apply(c.world.answer(d.Claim, c.uidOf(i)))
		c.changed(i)
		return
	}
	v := &c.seen
	if !c.world.Graph.FindInto(v, i.at) {
		return
	}
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
			i.happens(Stuck, theAPIServer+" refuses: "+nobodyMay, c)
			return
		}
		i.Why = d.Why
		if v.Kind == namespaces || v.Kind == definitions {
			c.takesAlong(i, v, d.Propagation)
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
			i.happens(Unknown, strings.Join(append([]string{d.Why}, c.world.misnamed(v)...), "; "), c)
		}
	}
}

// takesAlong has a namespace or a definition terminate, which goes when all that it holds has.
func (c *playing) takesAlong(i *Item, v *graph.View, propagation metav1.DeletionPropagation) {
	now, _ := c.world.Graph.Find(v.UID) // v is room for others
	i.Outcome, i.Stage = Deleted, c.stage
	if c.enforce != nil && c.step == 1 {
		i.Archive = c.enforce(now).Archive
	}
	c.later = append(c.later, &part{item: i, view: now, propagation: propagation})
	v.Deleting = true
	c.observe(i, v, ownersOf(v), v.Finalizers)
}

// uidOf is the uid of an item's object, which it has only once something has happened to it.
func (c *playing) uidOf(i *Item) types.UID {
	v, _ := c.world.Graph.FindAt(i.at)
	return v.UID
}

// happens says what becomes of an object now.
func (i *Item) happens(o Outcome, why string, c *playing) {
	i.Outcome, i.Why, i.Step, i.Stage = o, why, c.step, c.stage
}

// delete is what the API server does with a DELETE (RB 5), and Weir besides where policies say how
// it is to go on.
func (c *playing) delete(i *Item, v *graph.View, propagation metav1.DeletionPropagation) {
	i.Outcome, i.Stage = Deleted, c.stage
	// By its finalizer Weir enforces a propagation, and none can be added to what is being deleted.
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

// carryOut has a deletion go on as policies say. Weir's own finalizer holds the object until that
// is done, which is now.
func (c *playing) carryOut(i *Item, v *graph.View, finalizers []string, s Enforcement, propagation metav1.DeletionPropagation) {
	if s.Keeps != nil {
		c.keep(v, s)
	}
	i.Propagation = propagation
	c.write(i, v, slices.DeleteFunc(asked(finalizers, propagation), func(f string) bool { return f == v1beta1.Finalizer }))
}

// braked is how a deletion goes on that a brake holds, when a person has decided so.
type braked struct {
	enforcement Enforcement
	propagation metav1.DeletionPropagation
}

// brake holds a deletion with which more goes than a policy lets go, and tells whether it does.
// Nothing follows from it before a person has decided.
func (c *playing) brake(i *Item, v *graph.View, s Enforcement, propagation metav1.DeletionPropagation) bool {
	if s.Limit == nil || c.approved[v.UID] || c.draining[v.Namespace] {
		return false
	}
	n := c.world.alongWith(v, s)
	switch {
	case n <= *s.Limit:
		return false
	case s.Unheld != "":
		i.Doubt = cmp.Or(i.Doubt, s.Unheld)
		return false
	}
	i.Brake = fmt.Sprintf("%s would also be deleted, and policy %s allows %d", words.Count(n, "object", "objects"), s.LimitBy, *s.Limit)
	i.Propagation = propagation
	c.braked[v.UID] = braked{s, propagation}
	c.write(i, v, append(slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool { return collectors(f) || f == v1beta1.Finalizer }), v1beta1.Finalizer))
	return true
}

// asked are the finalizers of an object of which a DELETE asks for a propagation; empty leaves
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

// keep takes the reference to an object off its dependents of some kinds.
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
		i := c.item(c.world.Graph.Handle(d.UID))
		c.meet(i, &d)
		if i.Outcome != Deleted {
			i.happens(Released, "policy "+s.By+" keeps dependents of this kind", c)
		}
		i.keepers = append(i.keepers, v.UID)
		c.observe(i, &d, rest, d.Finalizers)
	}
}

// write leaves an object with these finalizers; without any it is gone, if it was being deleted.
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
	c.told = c.world.Graph.ApplyTo(c.told[:0], e)
	for _, at := range c.told {
		c.changed(c.item(at))
	}
}

// changed notes that the decision about an object may have changed: what follows from that is
// another step.
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

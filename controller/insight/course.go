package insight

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// course plays a deletion. The graph decides as it does in the collector; what it asks for is done at once.
//
// It goes in steps: all that can happen happens, and what follows from it is the next step. When nothing more happens,
// objects may be left that are held by finalizers which neither the collector nor Weir takes off. They are noted, and
// it goes on as if those came off: that is the next stage.
type course struct {
	world *World
	shape func(graph.View) Enforcement // nil: nothing is known of policies
	next  []*Item                      // whose decision may have changed
	items map[types.UID]*Item
	order []*Item // as they were met
	step  int
	stage int
	held  map[types.UID]*Item
	rv    uint64
}

// Enforcement is what a policy says about the deletion of an object.
type Enforcement struct {
	Propagation metav1.DeletionPropagation // empty: as was asked
	// Spares tells which kinds of dependents lose their reference to the object instead; nil: none.
	Spares func(schema.GroupResource) bool
	By     string
	// Doubt is why it is not known what policies say; empty if it is.
	Doubt string
}

func newCourse(w *World, shape func(graph.View) Enforcement) *course {
	return &course{world: w, shape: shape, items: map[types.UID]*Item{}, held: map[types.UID]*Item{}, rv: 1 << 62}
}

// item is what is said about an object; it is made at the first time that something about it may change.
func (c *course) item(uid types.UID) *Item {
	i := c.items[uid]
	if i == nil {
		i = &Item{}
		i.UID = uid
		c.items[uid] = i
	}
	return i
}

// meet fills an item in, when something happens to the object: as it was then.
func (c *course) meet(i *Item, v *graph.View) {
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
func (c *course) run() {
	for {
		for len(c.next) > 0 {
			now := c.next
			c.next = nil
			c.step++
			// All are decided about before anything is done: workers do not see yet what others do at the same time.
			actions := make([]graph.Action, len(now))
			for n, i := range now {
				actions[n] = c.world.Graph.Decide(i.UID)
			}
			for n, i := range now {
				c.do(i, actions[n])
			}
		}
		if !c.removeFinalizers() {
			return
		}
	}
}

// removeFinalizers takes finalizers off that nobody here takes off, which begins a stage.
func (c *course) removeFinalizers() bool {
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
		c.write(i, &v, keep)
	}
	return true
}

// collectors tells whether a finalizer is the collector's.
func collectors(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}

// do carries out a decision about an object.
func (c *course) do(i *Item, a graph.Action) {
	g := c.world.Graph
	switch a.Verb {
	case graph.Keep:
		if a.Trouble == graph.NoTrouble {
			return
		}
	case graph.Wait:
		return
	case graph.Look:
		c.apply(graph.Looking{Claim: a.Claim})
		c.apply(c.world.answer(a.Claim, i.UID))
		c.changed(i)
		return
	}
	v, ok := g.Find(i.UID)
	if !ok {
		return
	}
	c.meet(i, &v)
	switch a.Verb {
	case graph.Delete:
		if !v.Deleting {
			i.Why = a.Why
			c.delete(i, &v, a.Propagation)
		}
	case graph.Release, graph.Unblock:
		if a.Verb == graph.Release && i.Outcome != Deleted {
			i.happens(Released, a.Why, c)
		}
		c.observe(i, &v, a.Owners, v.Finalizers)
	case graph.Unfinalize:
		c.write(i, &v, a.Finalizers)
	case graph.Keep:
		if !v.Deleting {
			i.happens(Unknown, a.Why, c)
		}
	}
}

// happens says what becomes of an object now.
func (i *Item) happens(o Outcome, why string, c *course) {
	i.Outcome, i.Why, i.Step, i.Stage = o, why, c.step, c.stage
}

// delete is what the API server does with a DELETE (RB 5), and Weir besides where policies say how it is to go on.
func (c *course) delete(i *Item, v *graph.View, propagation metav1.DeletionPropagation) {
	i.Outcome, i.Stage = Deleted, c.stage
	v.Deleting = true
	v.Finalizers = asked(v.Finalizers, propagation)
	if c.shape != nil {
		s := c.shape(*v)
		if s.By != "" {
			i.Policy, propagation = s.By, cmp.Or(s.Propagation, propagation)
		}
		i.Doubt = s.Doubt
		if s.Spares != nil {
			c.spare(v, s)
		}
		// Weir's own finalizer holds the object until that is carried out, which is now.
		v.Finalizers = slices.DeleteFunc(asked(v.Finalizers, propagation), func(f string) bool { return f == v1alpha1.Finalizer })
	}
	i.Propagation = propagation
	c.write(i, v, v.Finalizers)
}

// asked are the finalizers of an object of which a DELETE asks for a propagation; empty leaves them.
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

// spare takes the reference to an object off its dependents of some kinds.
func (c *course) spare(v *graph.View, s Enforcement) {
	for _, d := range c.world.Graph.Dependents(v.UID) {
		if !s.Spares(d.Kind) {
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
		c.observe(i, &d, rest, d.Finalizers)
	}
}

// write leaves an object with these finalizers; without any it is gone, if it was being deleted.
func (c *course) write(i *Item, v *graph.View, finalizers []string) {
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

func (c *course) observe(i *Item, v *graph.View, owners []metav1.OwnerReference, finalizers []string) {
	c.rv++
	c.apply(graph.Observed{Object: &graph.Object{
		Kind: v.Kind, UID: v.UID, Namespace: v.Namespace, Name: v.Name, ResourceVersion: strconv.FormatUint(c.rv, 10),
		Owners: owners, Finalizers: finalizers, Deleting: v.Deleting,
	}})
	c.changed(i)
}

func (c *course) apply(e graph.Event) {
	for _, uid := range c.world.Graph.Apply(e) {
		c.changed(c.item(uid))
	}
}

// changed notes that the decision about an object may have changed: what follows from that is another step.
func (c *course) changed(i *Item) {
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

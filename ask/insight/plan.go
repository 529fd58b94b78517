package insight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/words"
)

var (
	namespaces  = schema.GroupResource{Resource: "namespaces"}
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	pods        = schema.GroupResource{Resource: "pods"}
)

// cleanup is the finalizer by which a definition waits for its instances.
const cleanup = "customresourcecleanup.apiextensions.k8s.io"

// undeletable are the namespaces whose deletes the API server refuses, whoever asks.
var undeletable = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

const nobodyMay = "the API server refuses to delete this namespace, whoever asks"

func isUndeletable(v *graph.View) bool {
	return v.Kind == namespaces && slices.Contains(undeletable, v.Name)
}

// Propagations maps the values of kubectl's --cascade to propagations.
var Propagations = map[string]metav1.DeletionPropagation{
	"background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground,
	"orphan":     metav1.DeletePropagationOrphan,
}

// Deletion is what a user is about to do.
type Deletion struct {
	Roots []types.UID
	// Garbage says that Roots are garbage, which a collector deletes: see World.Garbage.
	Garbage bool
	// Decided says that a person has approved the deletion of Roots, so no brake holds them.
	Decided     bool
	Propagation metav1.DeletionPropagation
	// Enforce returns what policies say about the deletion of an object, as the DELETE leaves it;
	// nil if nothing is known of policies.
	Enforce func(graph.View) Enforcement
	// Protects returns why a policy refuses a collector the delete of an object, which is then
	// released from its owners; why is empty if none does. doubt is why that is not known. nil:
	// nothing is known of policies.
	Protects func(graph.View) (why, doubt string)
	// Verdicts are what policies say about the deletes of Roots.
	Verdicts []Verdict
	// Waves returns, for a namespace, a function that returns in which wave an object is deleted,
	// from 0. nil: pods first, then the rest.
	Waves func(namespace string) func(graph.View) int
}

// Outcome is what becomes of an object.
type Outcome string

// The outcomes.
const (
	Deleted  Outcome = "delete"
	Released Outcome = "release" // stays, and loses references to owners that are deleted
	Unknown  Outcome = "unknown" // stays as far as is known: something about it could not be read, or resolved
	Stuck    Outcome = "stuck"   // its deletion begins, and does not end even when finalizers are removed
)

// Item is what becomes of one object, and why.
type Item struct {
	Object
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"`
	// Step orders items: one with a higher step is deleted because of, or after, what it depends
	// on. Objects that do not depend on each other are deleted in any order.
	Step int `json:"step"`
	// Stage counts how often others have to remove finalizers before that; 0 means that it happens
	// at once.
	Stage int `json:"stage,omitempty"`
	// Finalizers are those that others must remove before it is gone.
	Finalizers  []string                   `json:"finalizers,omitempty"`
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
	Policy      string                     `json:"policy,omitempty"` // the one that decides its propagation
	Doubt       string                     `json:"doubt,omitempty"`  // why it is not known whether one does
	// Archive is the policy by which it is recorded before it is deleted, with all that is deleted
	// with it.
	Archive string `json:"archive,omitempty"`
	// Brake is why a brake holds it until a person decides; empty if none does.
	Brake string `json:"brake,omitempty"`
	// Contested is why it is not known whether it is deleted, although all was read: it depends on
	// which of two events comes first.
	Contested string `json:"contested,omitempty"`
	Deleting  bool   `json:"deleting,omitempty"` // it is being deleted already
	// Volume is what becomes of the volume of a claim; nil if it is no claim, or its volume is not
	// known.
	Volume *Volume `json:"volume,omitempty"`
	// CreatedAgainBy is its controller, if that stays: it is likely to create the object again.
	CreatedAgainBy *Object `json:"anew,omitempty"`

	stuck      string // why it stays, if the graph does not know
	fresh      int    // the last step in which the decision about it may have changed
	written    int    // the last step in which it was written
	owners     []types.UID
	keepers    []types.UID // deleted owners whose policy keeps it
	controller types.UID   // the owner that is its controller; empty if none is
	via        types.UID   // the namespace or definition that it is deleted with
}

// Verdict is what policies say about the delete of a root.
type Verdict struct {
	Object   Object   `json:"object"`
	Refused  bool     `json:"refused"`
	Message  string   `json:"message,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Confirm is a command that confirms the delete for exactly what is deleted with it now,
	// without flags that select the cluster; empty if no confirmation is asked for.
	Confirm string `json:"confirm,omitempty"`
	// Doubt is why it is not known what policies say; empty if it is.
	Doubt string `json:"doubt,omitempty"`
}

// WithFlags appends flags that select the cluster to the commands of the plan.
func (p *Plan) WithFlags(flags string) {
	for i := range p.Verdicts {
		if v := &p.Verdicts[i]; v.Confirm != "" {
			v.Confirm += flags
		}
	}
}

// Plan is what a deletion would do.
type Plan struct {
	// Held is the HeldCollection whose deletions, if a person approves them, the plan shows; empty
	// if a client requests the deletes.
	Held        string                     `json:"held,omitempty"`
	Roots       []Object                   `json:"roots"`
	Verdicts    []Verdict                  `json:"verdicts,omitempty"`
	Propagation metav1.DeletionPropagation `json:"propagation"`
	Items       []*Item                    `json:"items"`
	Unread      []Unread                   `json:"unread,omitempty"`
}

// Totals counts objects by outcome.
type Totals struct {
	Deleted      int `json:"deleted"`
	Held         int `json:"held"`   // of Deleted: with finalizers that others must remove
	Braked       int `json:"braked"` // of Deleted: held by a brake until a person decides
	Later        int `json:"later"`
	Volumes      int `json:"volumes,omitempty"` // whose data is deleted with claims
	CreatedAgain int `json:"anew"`              // of Deleted: their controllers stay
	Released     int `json:"released"`
	Unknown      int `json:"unknown"`
	Refused      int `json:"refused"` // of the roots
	Stuck        int `json:"stuck"`
	Doubtful     int `json:"doubtful"` // it is not known what policies say about their deletion
	// Contested are those for which it depends on the order of events whether they are deleted.
	Contested int `json:"contested"`
	Steps     int `json:"steps"`
}

// Totals counts the items.
func (p *Plan) Totals() (t Totals) {
	doubtful := map[types.UID]bool{}
	for _, v := range p.Verdicts {
		if v.Refused {
			t.Refused++
		}
		if v.Doubt != "" {
			doubtful[v.Object.UID] = true
		}
	}
	for _, i := range p.Items {
		if i.Doubt != "" {
			doubtful[i.UID] = true
		}
		if i.Contested != "" {
			t.Contested++
		}
		switch i.Outcome {
		case Deleted:
			t.Deleted++
			t.Steps = max(t.Steps, i.Step)
			if i.Volume.losesData() {
				t.Volumes++
			}
			if i.CreatedAgainBy != nil {
				t.CreatedAgain++
			}
			if i.Brake != "" {
				t.Braked++
			} else if len(i.Finalizers) > 0 {
				t.Held++
			} else if i.Stage > 0 {
				t.Later++
			}
		case Released:
			t.Released++
		case Unknown:
			t.Unknown++
		case Stuck:
			t.Stuck++
		}
	}
	t.Doubtful = len(doubtful)
	return t
}

// part is a namespace or a definition, with which more than its dependents is deleted.
type part struct {
	item        *Item
	view        graph.View
	propagation metav1.DeletionPropagation

	begun, over bool
	waves       []wave      // those that have not begun
	open        []types.UID // the objects of begun waves that are not gone yet
}

// wave are the objects of a namespace or a definition that are deleted at once.
type wave struct {
	why     string
	objects []graph.View
}

// Plan plays a deletion. The World must not be used afterwards.
func (w *World) Plan(d Deletion) *Plan {
	c := newPlaying(w, d.Enforce)
	c.protects, c.waves = d.Protects, d.Waves
	p := &Plan{Propagation: d.Propagation, Verdicts: slices.Clone(d.Verdicts)}
	c.step = 1
	for _, uid := range d.Roots {
		v, ok := w.Graph.Find(uid)
		if !ok {
			continue
		}
		p.Roots = append(p.Roots, objectOf(&v))
		c.approved[uid] = d.Decided
		i := c.item(uid)
		if d.Garbage {
			c.changed(i)
			continue
		}
		c.meet(i, &v)
		if isUndeletable(&v) {
			i.happens(Stuck, nobodyMay, c)
			continue
		}
		i.Why = "asked for"
		switch v.Kind {
		case namespaces, definitions:
			c.terminate(i, &v, d.Propagation)
		default:
			c.delete(i, &v, d.Propagation)
		}
	}
	c.run()
	p.Items = c.end()
	p.Unread = w.Unread() // after the play: policies may have missed something meanwhile
	if at := slices.IndexFunc(p.Items, c.unsettled); at >= 0 && len(p.Unread) == 0 {
		p.Unread = []Unread{{Kind: "an owner of " + p.Items[at].String(), Reason: "the object is kept for it", Besides: true}}
	}
	return p
}

// drain sets the waves in which the content of a namespace is deleted.
func (c *playing) drain(l *part) {
	of := func(v graph.View) int {
		if v.Kind == pods {
			return 0
		}
		return 1
	}
	if c.waves != nil {
		if f := c.waves(l.view.Name); f != nil {
			of = f
		}
	}
	c.draining[l.view.Name] = true
	byWave := map[int][]graph.View{}
	for _, v := range c.world.held(&l.view) {
		n := of(v)
		byWave[n] = append(byWave[n], v)
	}
	for _, n := range slices.Sorted(maps.Keys(byWave)) {
		l.waves = append(l.waves, wave{fmt.Sprintf("in the namespace, wave %d", n+1), byWave[n]})
	}
}

// instances sets the one wave of a definition: all its instances.
func (c *playing) instances(l *part) {
	l.item.Propagation = l.propagation
	all := wave{why: "of the definition"}
	all.objects = c.world.held(&l.view)
	l.waves = []wave{all}
}

// advance begins the next wave of each namespace and definition whose last wave is gone, or ends it
// if it has no more, and reports whether any advanced. With stuck, nothing else happens any more,
// so next waves begin although objects are left.
func (c *playing) advance(stuck bool) (goesOn bool) {
	step := c.step + 1
	for n := 0; n < len(c.later); n++ { // c.later may grow meanwhile
		l := c.later[n]
		if l.over {
			continue
		}
		if !l.begun {
			l.begun = true
			if l.view.Kind == namespaces {
				c.drain(l)
			} else {
				c.instances(l)
			}
		}
		for len(l.open) > 0 && !c.world.Graph.Has(l.open[len(l.open)-1]) {
			l.open = l.open[:len(l.open)-1]
		}
		if len(l.open) > 0 && (!stuck || len(l.waves) == 0) {
			continue
		}
		goesOn, c.step = true, step
		if len(l.waves) > 0 {
			c.deleteWave(l)
			continue
		}
		l.over = true
		now, ok := c.world.Graph.Find(l.item.UID)
		if !ok {
			continue
		}
		c.write(l.item, &now, slices.DeleteFunc(slices.Clone(now.Finalizers), func(f string) bool {
			return f == cleanup && now.Kind == definitions
		}))
	}
	return goesOn
}

// deleteWave deletes the objects of the next wave of a namespace or a definition.
func (c *playing) deleteWave(l *part) {
	next := l.waves[0]
	l.waves = l.waves[1:]
	for _, v := range next.objects {
		now, ok := c.world.Graph.Find(v.UID)
		if !ok {
			continue // it was deleted with an owner
		}
		l.open = append(l.open, v.UID)
		i := c.item(v.UID)
		c.meet(i, &now)
		i.via = l.view.UID
		if !now.Deleting {
			i.Why = next.why
			c.delete(i, &now, metav1.DeletePropagationBackground)
		} else {
			i.Outcome, i.Stage = Deleted, c.stage
			c.write(i, &now, now.Finalizers) // it is gone when its finalizers are removed
		}
	}
}

// end determines what is left when nothing happens any more, and sorts the items by when they
// happen.
func (c *playing) end() []*Item {
	for _, l := range c.later {
		l.open = slices.DeleteFunc(l.open, func(uid types.UID) bool { return !c.world.Graph.Has(uid) })
		if len(l.open) > 0 {
			l.item.stuck = "waits for " + words.Count(len(l.open), "object that is stuck",
				"objects that are stuck")
		}
	}
	for _, i := range c.order {
		if i.Outcome == "" { // nothing happens to it
			continue
		}
		if i.Outcome == Deleted && c.world.Graph.Has(i.UID) {
			i.Outcome, i.Step = Stuck, c.step
			i.Why = cmp.Or(i.stuck, c.world.Graph.Decide(i.UID).Why)
		}
		if i.Outcome != Deleted || i.controller == "" {
			continue
		}
		if maker, ok := c.world.Graph.Find(i.controller); ok && !maker.Deleting {
			o := objectOf(&maker)
			i.CreatedAgainBy = &o
		}
	}
	c.contest()
	items := slices.DeleteFunc(c.order, func(i *Item) bool { return i.Outcome == "" })
	renumber(items)
	// Items of one step stay in the order in which the graph returned them, mostly that of the
	// lists: by name.
	slices.SortStableFunc(items, func(a, b *Item) int { return cmp.Or(a.Stage-b.Stage, a.Step-b.Step) })
	return items
}

// unsettled reports whether an object is kept because it is not known whether an owner exists.
func (c *playing) unsettled(i *Item) bool {
	return i.Outcome == Unknown && c.world.Graph.Decide(i.UID).Unresolvable == graph.Unreadable
}

// renumber counts only steps in which something happens.
func renumber(items []*Item) {
	met := map[int]int{}
	for _, i := range items {
		met[i.Step] = 0
	}
	for n, step := range slices.Sorted(maps.Keys(met)) {
		met[step] = n + 1
	}
	for _, i := range items {
		i.Step = met[i.Step]
	}
}

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

// Propagations are those that a delete can ask for, by their names in kubectl's --cascade.
var Propagations = map[string]metav1.DeletionPropagation{
	"background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground,
	"orphan":     metav1.DeletePropagationOrphan,
}

// Deletion is what a user is about to do.
type Deletion struct {
	Roots []types.UID
	// Garbage says that Roots are garbage, which collectors delete without being asked: see
	// World.Garbage.
	Garbage bool
	// Decided says that a person has decided about Roots: no brake holds them.
	Decided     bool
	Propagation metav1.DeletionPropagation
	// GracePeriodSeconds is how long Roots may take to stop; nil: as they say themselves.
	GracePeriodSeconds *int64
	// Enforce is what policies say about the deletion of an object, as the DELETE leaves it; nil:
	// nothing is known of policies.
	Enforce func(graph.View) Enforcement
	// Protects is why a policy refuses a collector the delete of an object, which is then released
	// from its owners; empty where none does. doubt is why that is not known. nil: nothing is known
	// of policies.
	Protects func(graph.View) (why, doubt string)
	// Verdicts are what policies say about the deletes of Roots.
	Verdicts []Verdict
	// Waves are the kinds in the order in which the content of a namespace goes: each function
	// tells the wave of an object, counted from 0. nil: pods, then the rest.
	Waves func(namespace string) func(graph.View) int
}

// Outcome is what becomes of an object.
type Outcome string

// The outcomes.
const (
	Deleted  Outcome = "delete"
	Released Outcome = "release" // stays, and loses references to owners that go
	Unknown  Outcome = "unknown" // stays as far as can be told: something about it could not be read, or resolved
	Stuck    Outcome = "stuck"   // its deletion begins and does not end by itself, and not by finalizers coming off
)

// Item is what becomes of one object, and why.
type Item struct {
	Object
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"`
	// Step is when: what has a higher one goes because of, or after, what it depends on. Objects
	// that do not depend on each other go in any order.
	Step int `json:"step"`
	// Stage counts how often finalizers that others must take off have to come off before that; 0:
	// it happens at once.
	Stage int `json:"stage,omitempty"`
	// Finalizers are those that others must take off before it goes.
	Finalizers []string `json:"finalizers,omitempty"`
	// Deserted is why nothing may be left that takes them off; empty if nothing tells that.
	Deserted    string                     `json:"deserted,omitempty"`
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
	Policy      string                     `json:"policy,omitempty"` // that decides its propagation
	Doubt       string                     `json:"doubt,omitempty"`  // why it is not known whether one does
	// Archive is the policy by which it is recorded before it goes, with all that goes with it.
	Archive string `json:"archive,omitempty"`
	// Brake is why a brake holds it until a person decides; empty if none does.
	Brake string `json:"brake,omitempty"`
	// Contested is why it is not known whether it goes, although all is known: it depends on which
	// of two things comes first.
	Contested string `json:"contested,omitempty"`
	Deleting  bool   `json:"deleting,omitempty"` // it is being deleted already
	// GracePeriodSeconds is how long a pod may take to stop; absent where it is not known, or not a
	// pod's.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// Volume is what becomes of the volume of a claim; nil where it has none that is known, or is
	// no claim.
	Volume *Volume `json:"volume,omitempty"`
	// CreatedAgainBy is its controller, if that lives on: it is likely to make the object again.
	CreatedAgainBy *Object `json:"anew,omitempty"`

	at         graph.Handle
	stuck      string // why it never goes, where the graph does not know
	fresh      int    // the step in which the decision about it changed last
	written    int    // the step in which it was written last
	owners     []types.UID
	keepers    []types.UID // owners that go, of which a policy keeps it
	controller types.UID   // the one of them that makes it; empty if none does
	removers   []string    // names of the components that are to take finalizers off
	via        types.UID   // what takes it along without owning it: its namespace, its definition
}

// Verdict is what policies, or the API server, say about the delete of one of the objects that are
// asked about.
type Verdict struct {
	Object  Object `json:"object"`
	Refused bool   `json:"refused"`
	// By is who refuses; empty: a policy.
	By       string   `json:"by,omitempty"`
	Message  string   `json:"message,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Confirm is a command that confirms the delete for exactly what goes with it now, without
	// flags that say which cluster; empty where that is not asked for.
	Confirm string `json:"confirm,omitempty"`
	// Protected are all objects that go along and that a policy protects, where these were asked
	// for.
	Protected []Protected `json:"protected,omitempty"`
	// Doubt is why it is not known what policies say; empty if it is.
	Doubt string `json:"doubt,omitempty"`
}

// Protected is an object that goes along and that a policy protects.
type Protected struct {
	Object string `json:"object"`
	By     string `json:"by"`
	// Confirm is a command that confirms its delete, without flags that say which cluster; empty:
	// none does.
	Confirm string `json:"confirm,omitempty"`
}

// WithFlags has the commands that are shown carry flags, which say of which cluster they are.
func (p *Plan) WithFlags(flags string) {
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if v.Confirm != "" {
			v.Confirm += flags
		}
		for n := range v.Protected {
			if one := &v.Protected[n]; one.Confirm != "" {
				one.Confirm += flags
			}
		}
	}
}

// Plan is what a deletion would do.
type Plan struct {
	// Held is the HeldCollection of which it is shown what goes if a person decides so; empty:
	// deletes that a client asks for.
	Held        string                     `json:"held,omitempty"`
	Roots       []Object                   `json:"roots"`
	Verdicts    []Verdict                  `json:"verdicts,omitempty"`
	Propagation metav1.DeletionPropagation `json:"propagation"`
	// GracePeriodSeconds is how long Roots may take to stop; nil: as they say themselves.
	GracePeriodSeconds *int64   `json:"gracePeriodSeconds,omitempty"`
	Items              []*Item  `json:"items"`
	Unread             []Unread `json:"unread,omitempty"`
}

// Totals are how many objects have which outcome.
type Totals struct {
	Deleted      int `json:"deleted"`
	Held         int `json:"held"`   // of Deleted: carry finalizers that others must take off
	Braked       int `json:"braked"` // of Deleted: held by a brake until a person decides
	Later        int `json:"later"`
	Volumes      int `json:"volumes,omitempty"` // whose data goes with claims
	CreatedAgain int `json:"anew"`              // of Deleted: their controllers live on
	Released     int `json:"released"`
	Unknown      int `json:"unknown"`
	Refused      int `json:"refused"`             // of the objects that are asked about
	Forbidden    int `json:"forbidden,omitempty"` // of Refused: by the API server
	Stuck        int `json:"stuck"`
	Doubtful     int `json:"doubtful"` // it is not known what policies say about their deletion
	// Contested are those of which it depends on what comes first whether they go.
	Contested int `json:"contested"`
	Steps     int `json:"steps"`
}

// Totals counts the items.
func (p *Plan) Totals() (t Totals) {
	doubtful := map[types.UID]bool{}
	for _, v := range p.Verdicts {
		if v.Refused {
			t.Refused++
			if v.By != "" {
				t.Forbidden++
			}
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

// part is what takes along more than its dependents: a namespace, or a definition.
type part struct {
	item        *Item
	view        graph.View
	propagation metav1.DeletionPropagation

	begun, over bool
	waves       []wave         // that are still to begin
	open        []graph.Handle // what it takes along, and what is not gone yet
}

// wave are objects that a namespace or a definition takes along at once.
type wave struct {
	why     string
	objects []graph.View
}

// Plan plays a deletion. The World is used up by it.
func (w *World) Plan(d Deletion) *Plan {
	c := newPlaying(w, d.Enforce)
	c.protects, c.waves = d.Protects, d.Waves
	p := &Plan{Propagation: d.Propagation, GracePeriodSeconds: d.GracePeriodSeconds, Verdicts: slices.Clone(d.Verdicts)}
	c.step = 1
	for _, uid := range d.Roots {
		v, ok := w.Graph.Find(uid)
		if !ok {
			continue
		}
		p.Roots = append(p.Roots, objectOf(&v))
		if isUndeletable(&v) {
			p.Verdicts = slices.DeleteFunc(p.Verdicts, func(of Verdict) bool { return of.Object.UID == uid })
			p.Verdicts = append(p.Verdicts, Verdict{Object: objectOf(&v), Refused: true, By: theAPIServer,
				Message: nobodyMay})
			continue
		}
		c.approved[uid] = d.Decided
		i := c.item(w.Graph.Handle(uid))
		if d.Garbage {
			c.changed(i)
			continue
		}
		c.meet(i, &v)
		i.Why = "asked for"
		switch v.Kind {
		case namespaces, definitions:
			c.takesAlong(i, &v, d.Propagation)
		default:
			c.delete(i, &v, d.Propagation)
		}
	}
	c.run()
	p.Items = c.end()
	w.removers(p.Items)
	p.Unread = w.Unread() // policies may have missed something on the way
	return p
}

// drain sorts what is in a namespace into the waves in which it goes.
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

// instances are all objects of a definition, which go at once.
func (c *playing) instances(l *part) {
	l.item.Propagation = l.propagation
	all := wave{why: "of the definition"}
	all.objects = c.world.held(&l.view)
	l.waves = []wave{all}
}

// advance has each namespace and definition go on with its next wave whose last one is gone, or
// with its own end, and tells whether any did. Stuck: nothing goes any more, so the next waves
// begin although objects are left.
func (c *playing) advance(stuck bool) (goesOn bool) {
	step := c.step + 1
	for n := 0; n < len(c.later); n++ { // further ones come meanwhile
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
			c.takeAlong(l)
			continue
		}
		l.over = true
		now, ok := c.world.Graph.FindAt(l.item.at)
		if !ok {
			continue
		}
		c.write(l.item, &now, slices.DeleteFunc(slices.Clone(now.Finalizers), func(f string) bool {
			return f == cleanup && now.Kind == definitions
		}))
	}
	return goesOn
}

// takeAlong deletes the objects of the next wave of a namespace or a definition.
func (c *playing) takeAlong(l *part) {
	next := l.waves[0]
	l.waves = l.waves[1:]
	for _, v := range next.objects {
		at := c.world.Graph.Handle(v.UID)
		now, ok := c.world.Graph.FindAt(at)
		if !ok {
			continue // it went with an owner
		}
		l.open = append(l.open, at)
		i := c.item(at)
		c.meet(i, &now)
		i.via = l.view.UID
		if !now.Deleting {
			i.Why = next.why
			c.delete(i, &now, metav1.DeletePropagationBackground)
		} else {
			i.Outcome, i.Stage = Deleted, c.stage
			c.write(i, &now, now.Finalizers) // goes when what holds it comes off
		}
	}
}

// end looks at what is left when nothing happens any more, and sorts everything by when it happens.
func (c *playing) end() []*Item {
	for _, l := range c.later {
		l.open = slices.DeleteFunc(l.open, func(at graph.Handle) bool { return !c.world.Graph.Has(at) })
		if len(l.open) > 0 {
			l.item.stuck = "waits for " + words.Count(len(l.open), "object that is stuck",
				"objects that are stuck")
		}
	}
	for _, i := range c.order {
		if i.Outcome == "" { // only met on the way
			continue
		}
		if i.Outcome == Deleted && c.world.Graph.Has(i.at) {
			i.Outcome, i.Step = Stuck, c.step
			i.Why = cmp.Or(i.stuck, c.world.Graph.DecideAt(i.at).Why)
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
	// Those of one step stay in the order in which the graph told of them, which is that of the
	// lists: by name, mostly.
	slices.SortStableFunc(items, func(a, b *Item) int { return cmp.Or(a.Stage-b.Stage, a.Step-b.Step) })
	return items
}

// renumber counts only the steps in which something happens that is told.
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
